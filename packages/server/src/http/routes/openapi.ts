// The OpenAPI 3.1 document, generated from the route table and its schemas.

import {
  backendView,
  batchView,
  definedOf,
  type ErrorCode,
  errorBody,
  errorTable,
  groupView,
  prorlErrorBody,
  type Route,
  type RouteReply,
  rolloutView,
  submission,
  trajectoryView,
} from '@millrace/protocol';
import { type ZodObject, type ZodType, z } from 'zod';

type JsonObject = Record<string, unknown>;

const everyRoute: readonly ErrorCode[] = ['bad-request', 'unauthorized', 'forbidden', 'internal'];

/** Schemas listed as named components. */
const named = new Map<ZodType, string>([
  [rolloutView, 'Rollout'],
  [trajectoryView, 'Trajectory'],
  [backendView, 'Backend'],
  [batchView, 'Batch'],
  [groupView, 'Group'],
  [submission, 'Submission'],
  [errorBody, 'Error'],
  [prorlErrorBody, 'ProrlError'],
]);

export function toOpenapi(table: Readonly<Record<string, Route>>): JsonObject {
  const paths: Record<string, JsonObject> = {};
  for (const [name, route] of Object.entries(table)) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: toOperation(name, route) };
  }
  const components = [...named].map(([schema, name]) => [name, toSchema(schema, schema === submission ? 'input' : 'output')]);
  return {
    openapi: '3.1.0',
    info: { title: 'Millrace', version: '1', description: 'Rollouts of LLM agents as a service.' },
    paths,
    components: { schemas: Object.fromEntries(components), securitySchemes: { key: { type: 'http', scheme: 'bearer' } } },
    security: [{ key: [] }, {}],
  };
}

function toOperation(name: string, route: Route): JsonObject {
  const replies = Object.entries(route.replies).map(([status, reply]) => [status, toResponse(reply)]);
  return {
    operationId: name,
    tags: [route.tag],
    summary: route.summary,
    parameters: [...toParameters(route.params, 'path'), ...toParameters(route.query, 'query')],
    ...definedOf({ requestBody: route.body && toRequestBody(route.body) }),
    responses: { ...Object.fromEntries(replies), ...toErrorResponses(route) },
  };
}

function toRequestBody(body: ZodType): JsonObject {
  const required = !body.safeParse(undefined).success;
  return { required, content: { 'application/json': { schema: toSchema(body, 'input') } } };
}

function toParameters(schema: ZodObject | undefined, place: 'path' | 'query'): JsonObject[] {
  return Object.entries(schema?.shape ?? {}).map(([name, field]) => {
    const { description, ...rest } = toSchema(toZod(field), 'output');
    const required = place === 'path' || !toZod(field).safeParse(undefined).success;
    return definedOf({ name, in: place, required, description, schema: rest });
  });
}

function toResponse({ description, content }: RouteReply): JsonObject {
  const forms = Object.entries(content).map(([mediaType, form]) => [
    mediaType,
    typeof form === 'string' ? {} : { schema: toReference(form) },
  ]);
  return { description, content: Object.fromEntries(forms) };
}

/** One response per status, described by its error codes. */
function toErrorResponses({ errors, tag }: Route): JsonObject {
  const codes = [...everyRoute, ...errors];
  const byStatus = Map.groupBy(codes, (code) => errorTable[code].status);
  const schema = toReference(tag === 'prorl' ? prorlErrorBody : errorBody);
  return Object.fromEntries(
    [...byStatus].map(([status, group]) => [status, { description: group.join(', '), content: { 'application/json': { schema } } }]),
  );
}

function toReference(schema: ZodType): JsonObject {
  const name = named.get(schema);
  return name === undefined ? toSchema(schema, 'output') : { $ref: `#/components/schemas/${name}` };
}

function toSchema(schema: ZodType, io: 'input' | 'output'): JsonObject {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io });
  return rest;
}

/** A shape's fields are typed as zod's core type. */
function toZod(field: z.core.$ZodType): ZodType {
  return field as ZodType;
}
