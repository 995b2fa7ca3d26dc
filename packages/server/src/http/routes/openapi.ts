// The OpenAPI 3.1 document, made from the route table and the schemas in it.

import {
  backendView,
  batchView,
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

type Json = Record<string, unknown>;

const everyRoute: readonly ErrorCode[] = ['bad-request', 'unauthorized', 'forbidden', 'internal'];

/** Schemas that deserve a name of their own. */
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

export function toOpenapi(table: Readonly<Record<string, Route>>): Json {
  const paths: Record<string, Json> = {};
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

function toOperation(name: string, route: Route): Json {
  const replies = Object.entries(route.replies).map(([status, reply]) => [status, toResponse(reply)]);
  return {
    operationId: name,
    tags: [route.tag],
    summary: route.summary,
    parameters: [...toParameters(route.params, 'path'), ...toParameters(route.query, 'query')],
    ...(route.body === undefined
      ? {}
      : {
          requestBody: {
            required: !route.body.safeParse(undefined).success,
            content: { 'application/json': { schema: toSchema(route.body, 'input') } },
          },
        }),
    responses: { ...Object.fromEntries(replies), ...toErrorResponses(route) },
  };
}

function toParameters(schema: ZodObject | undefined, place: 'path' | 'query'): Json[] {
  return Object.entries(schema?.shape ?? {}).map(([name, field]) => {
    const { description, ...rest } = toSchema(toZod(field), 'output');
    const required = place === 'path' || !toZod(field).safeParse(undefined).success;
    return { name, in: place, required, ...(description === undefined ? {} : { description }), schema: rest };
  });
}

function toResponse({ description, content }: RouteReply): Json {
  const forms = Object.entries(content).map(([mediaType, form]) => [
    mediaType,
    typeof form === 'string' ? {} : { schema: toReference(form) },
  ]);
  return { description, content: Object.fromEntries(forms) };
}

/** One answer for each status, with the codes that it stands for. */
function toErrorResponses({ errors, tag }: Route): Json {
  const codes = [...everyRoute, ...errors];
  const byStatus = Map.groupBy(codes, (code) => errorTable[code].status);
  const schema = toReference(tag === 'prorl' ? prorlErrorBody : errorBody);
  return Object.fromEntries(
    [...byStatus].map(([status, group]) => [status, { description: group.join(', '), content: { 'application/json': { schema } } }]),
  );
}

function toReference(schema: ZodType): Json {
  const name = named.get(schema);
  return name === undefined ? toSchema(schema, 'output') : { $ref: `#/components/schemas/${name}` };
}

function toSchema(schema: ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io });
  return rest;
}

/** A shape's fields are typed as zod's core type. */
function toZod(field: z.core.$ZodType): ZodType {
  return field as ZodType;
}
