// Registers one row of the route table with Fastify: path, method, and zod checks of params, query and body before the handler.

import type { Route } from '@millrace/protocol';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type ZodType, z } from 'zod';
import { check } from './check.ts';

type Parsed<T> = T extends ZodType ? z.output<T> : undefined;

export interface RouteInput<R extends Route> {
  readonly params: Parsed<R['params']>;
  readonly query: Parsed<R['query']>;
  readonly body: Parsed<R['body']>;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

type Handler<R extends Route, Body> = (input: Omit<RouteInput<R>, 'body'> & { readonly body: Body }) => unknown;

export function mount<R extends Route>(app: FastifyInstance, route: R, handler: Handler<R, Parsed<R['body']>>): void {
  mountUnchecked(app, route, async (input) => {
    const body = route.body === undefined ? undefined : await check(route.body, input.body);
    return handler({ ...input, body: body as Parsed<R['body']> });
  });
}

/** For a handler that checks the body itself. */
export function mountUnchecked<R extends Route>(app: FastifyInstance, route: R, handler: Handler<R, unknown>): void {
  const nothing = z.strictObject({});
  app.route({
    method: route.method,
    url: route.path.replace(/\{(\w+)\}/g, ':$1'),
    // An endless stream has no HEAD.
    exposeHeadRoute: route.method === 'GET' && !Object.values(route.replies).some((reply) => 'text/event-stream' in reply.content),
    async handler(request, reply) {
      const params = await check(route.params ?? nothing, request.params);
      const query = await check(route.query ?? nothing, { ...(request.query as object) });
      return handler({ params, query, body: request.body, request, reply } as Parameters<typeof handler>[0]);
    },
  });
}
