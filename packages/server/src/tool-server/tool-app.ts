// The tool server as a Fastify instance: the routes of VeRL-Tool's tool server, and routes that lend whole sandboxes. Every trajectory has a
// sandbox of its own, and no reply is cached: the same action twice runs twice.

import { randomUUID } from 'node:crypto';
import type { Clock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import fastify, { type FastifyInstance } from 'fastify';
import { type KeyConfig, openGuard } from '../http/request/auth.ts';
import { replyToBrokenRequest, sendError, toReplyError } from '../http/request/errors.ts';
import type { HttpConfig } from '../http/request/http-config.ts';
import { acceptJson } from '../http/request/json-body.ts';
import { mountLending } from './lending-routes.ts';
import { mountObservations } from './observation-routes.ts';
import type { ToolSandboxes } from './tool-sandboxes.ts';

export interface ToolAppOptions {
  readonly sandboxes: ToolSandboxes;
  readonly config: KeyConfig & Pick<HttpConfig, 'maxBodyBytes'>;
  /** How long one action may run. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

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
