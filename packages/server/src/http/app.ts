// The HTTP API as a Fastify instance: made of a store, the tail of its event log and the scenarios. It holds no rollout;
// what it answered is in the store before it answers.

import { randomUUID } from 'node:crypto';
import type { Event } from '@millrace/protocol';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { LoopLag } from '../base/loop-lag.ts';
import type { TaskFiles } from '../sampling/task-files.ts';
import type { Scenarios } from '../scenario/load.ts';
import type { Store } from '../store/store.ts';
import type { Context } from './context/context.ts';
import { EndRate } from './context/end-rate.ts';
import { EndWaiters } from './context/end-waiters.ts';
import { EventFeed } from './context/event-feed.ts';
import { openStatus } from './context/status.ts';
import { openMetrics } from './metrics/metrics.ts';
import { mountProrl } from './prorl/prorl.ts';
import { openGuard } from './request/auth.ts';
import { answerBrokenRequest, answerUnknown, sendError, toAnswer } from './request/errors.ts';
import type { HttpConfig } from './request/http-config.ts';
import { acceptJson } from './request/json-body.ts';
import { mountBackends } from './routes/backend-routes.ts';
import { mountBatches } from './routes/batch-routes.ts';
import { mountPolicy } from './routes/policy-routes.ts';
import { mountRollouts } from './routes/rollout-routes.ts';
import { mountService } from './routes/service-routes.ts';

export interface AppOptions {
  readonly store: Store;
  /** All kinds of events, from the newest at the start on. */
  readonly tail: { subscribe(listener: (events: readonly Event[]) => void): () => void };
  readonly scenarios: Scenarios;
  readonly taskFiles: TaskFiles;
  readonly config: HttpConfig;
  readonly log: Log;
  readonly clock: Clock;
  readonly loopLag: Pick<LoopLag, 'read'>;
}

export interface App extends FastifyInstance {
  /** From here on nothing is taken in, and whoever waits is answered at once; reads go on until the app is closed. */
  drain(): void;
}

export async function openApp(options: AppOptions): Promise<App> {
  const draining = new AbortController();
  const context = makeContext(options, draining.signal);
  const app = openFastify(context);
  acceptJson(app);
  hook(app, context);
  mountRollouts(app, context);
  mountBatches(app, context);
  mountBackends(app, context);
  mountPolicy(app, context);
  mountService(app, context);
  mountProrl(app, context);

  const unsubscribe = options.tail.subscribe((events) => {
    for (const reader of [context.waiters, context.feed, context.endRate, context.metrics]) reader.push(events);
  });
  const drain = () => {
    draining.abort();
    context.waiters.close();
    context.feed.close();
  };
  // Waiting callers would hold up the close.
  app.addHook('preClose', async () => drain());
  app.addHook('onClose', async () => unsubscribe());
  await app.ready();
  return Object.assign(app, { drain });
}

function makeContext({ tail: _, loopLag, ...options }: AppOptions, draining: AbortSignal): Context {
  const { store, clock } = options;
  return {
    ...options,
    draining,
    status: openStatus({ store, clock, loopLag }),
    feed: new EventFeed(store, clock),
    waiters: new EndWaiters(clock),
    endRate: new EndRate(clock),
    metrics: openMetrics(),
  };
}

function openFastify({ config, log }: Context): FastifyInstance {
  const { maxBodyBytes, requestTimeoutMs } = config;
  return fastify({
    logger: false,
    bodyLimit: maxBodyBytes,
    requestTimeout: requestTimeoutMs,
    http: { connectionsCheckingInterval: Math.ceil(requestTimeoutMs / 4), headersTimeout: requestTimeoutMs },
    routerOptions: { maxParamLength: 256 },
    return503OnClosing: false,
    genReqId: () => randomUUID(),
    frameworkErrors: (error, request, reply) => void sendError(reply, toAnswer(error, log, request)),
    clientErrorHandler: answerBrokenRequest,
  });
}

function hook(app: FastifyInstance, { config, log, metrics, draining }: Context): void {
  const guard = openGuard(config.keys);
  app.addHook('onRequest', async (request) => guard(request));
  app.addHook('onSend', async (_request, reply) => {
    // A kept-alive connection would hold up the close.
    if (draining.aborted) reply.header('connection', 'close');
  });
  app.addHook('onResponse', async (request, reply) => metrics.request(toLabels(request, reply), reply.elapsedTime));
  app.setErrorHandler((error, request, reply) => sendError(reply, toAnswer(error, log, request)));
  app.setNotFoundHandler(answerUnknown);
}

function toLabels(request: FastifyRequest, reply: FastifyReply) {
  const waits = request.url.includes('wait=') ? '?wait' : '';
  return { method: request.method, route: `${request.routeOptions.url ?? 'none'}${waits}`, status: reply.statusCode };
}
