// The tool server as a Fastify instance: the routes of VeRL-Tool's tool server, and routes that lend whole sandboxes. Every trajectory has a
// sandbox of its own, and no reply is cached: the same action twice runs twice.

import { randomUUID } from 'node:crypto';
import fastify, { type FastifyInstance } from 'fastify';
import { openGuard } from '../http/request/auth.ts';
import { replyToBrokenRequest, sendError, toReplyError } from '../http/request/errors.ts';
import { acceptJson } from '../http/request/json-body.ts';
import { mountLending } from './lending-routes.ts';
import { mountObservations } from './observation-routes.ts';
import type { ToolAppOptions } from './tool-options.ts';

export function openToolApp(options: ToolAppOptions): FastifyInstance {
  const { config, log } = options;
  const app = fastify({
    logger: false,
    bodyLimit: config.maxBodyBytes,
    routerOptions: { maxParamLength: 256 },
    genReqId: () => randomUUID(),
    clientErrorHandler: replyToBrokenRequest,
  });
  acceptJson(app);
  const guard = openGuard(config);
  app.addHook('onRequest', async (request) => guard(request));
  app.setErrorHandler((error, request, reply) => sendError(reply, toReplyError(error, log, request)));
  mountObservations(app, options);
  mountLending(app, options);
  return app;
}
