// The HTTP API as a Fastify instance over a store, its event tail and the scenarios. It holds no rollouts: every change is in the
// store before the response is sent.

import { randomUUID } from 'node:crypto';
import type { Clock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import type { LoopLag } from '@millrace/base/loop-lag';
import type { Event } from '@millrace/protocol';
import type { Scenarios } from '@millrace/scenarios';
import type { Store } from '@millrace/store';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { TaskFiles } from '../batches/task-files.ts';
import type { AppContext } from './context/context.ts';

import { EndWaiters } from './context/end-waiters.ts';
import { EventFeed } from './context/event-feed.ts';
import { RecentEnds } from './context/recent-ends.ts';
import { openStatus } from './context/status.ts';
import { mountDashboard } from './dashboard/dashboard.ts';
import { WorkerFeed } from './machines/worker-feed.ts';
import { openMetrics } from './metrics/metrics.ts';
import { mountProrl } from './prorl/prorl.ts';
import { type KeyConfig, openGuard, replaceKeys } from './request/auth.ts';
import { replyToBrokenRequest, replyToUnknownRoute, sendError, toReplyError } from './request/errors.ts';
import type { HttpConfig } from './request/http-config.ts';
import { acceptJson } from './request/json-body.ts';
import { mountBackends } from './routes/backend-routes.ts';
import { mountBatches } from './routes/batch-routes.ts';
import { mountEvaluations } from './routes/evaluation-routes.ts';
import { mountGateways } from './routes/gateway-routes.ts';
import { mountPolicy } from './routes/policy-routes.ts';
import { mountRollouts } from './routes/rollout-routes.ts';
import { mountService } from './routes/service-routes.ts';
import { mountWorkerCalls } from './routes/worker-call-routes.ts';
import { mountTrainer } from './trainer/trainer-routes.ts';

export interface AppOptions {
  readonly store: Store;
  /** All kinds of events, from the start of the process. */
  readonly tail: { subscribe(listener: (events: readonly Event[]) => void): () => void };
  readonly scenarios: Scenarios;
  readonly taskFiles: TaskFiles;
  readonly config: HttpConfig;
  readonly log: Log;
  readonly clock: Clock;
  readonly probe: AppContext['probe'];
  readonly sandboxes: AppContext['sandboxes'];
  readonly workerSettings: AppContext['workerSettings'];
  readonly tokenizer?: AppContext['tokenizer'];
  readonly loopLag: Pick<LoopLag, 'read'>;
  readonly server: AppContext['server'];
  readonly leadership: AppContext['leadership'];
  /** Made before the store, which it measures. */
  readonly metrics?: AppContext['metrics'];
}

export interface App extends FastifyInstance {
  /** Rejects new work and wakes all waiting requests; reads continue until the app is closed. */
  drain(): void;
  /** Requests need these keys from now on. Throws for none at all where there were some. */
  useKeys(keys: KeyConfig): void;
  /** Counts a step of retention, by how long it held the store's write lock. */
  noteRetention(lockMs: number): void;
}

export async function openApp(options: AppOptions): Promise<App> {
  const draining = new AbortController();
  const config = { ...options.config };
  const context = makeContext({ ...options, config }, draining.signal);
  const app = openFastify(context);
  acceptJson(app);
  hook(app, context);
  mountRollouts(app, context);
  mountBatches(app, context);
  mountEvaluations(app, context);
  mountGateways(app, context);
  mountBackends(app, context);
  mountPolicy(app, context);
  mountTrainer(app, context);
  mountService(app, context);
  mountWorkerCalls(app, context);
  mountProrl(app, context);
  const dashboard = await mountDashboard(app, context);

  const unsubscribe = options.tail.subscribe((events) => {
    for (const reader of [context.waiters, context.feed, context.workerFeed, context.recentEnds, context.metrics, dashboard])
      reader.push(events);
  });
  const drain = () => {
    draining.abort();
    context.waiters.close();
    context.feed.close();
    context.workerFeed.close();
  };
  // Waiting requests would delay the close.
  app.addHook('preClose', async () => drain());
  app.addHook('onClose', async () => unsubscribe());
  await app.ready();
  return Object.assign(app, {
    drain,
    useKeys: (keys: KeyConfig) => replaceKeys(config, keys),
    noteRetention: (lockMs: number) => context.metrics.retention(lockMs),
  });
}

function makeContext({ tail: _, loopLag, ...options }: AppOptions, draining: AbortSignal): AppContext {
  const { store, clock } = options;
  const recentEnds = new RecentEnds(clock);
  return {
    ...options,
    draining,
    status: openStatus({ store, clock, loopLag, recentEnds }),
    feed: new EventFeed(store, clock),
    workerFeed: new WorkerFeed(store, clock),
    waiters: new EndWaiters(clock),
    recentEnds,
    metrics: options.metrics ?? openMetrics(),
  };
}

function openFastify({ config, log }: AppContext): FastifyInstance {
  const { maxBodyBytes, requestTimeoutMs } = config;
  return fastify({
    logger: false,
    bodyLimit: maxBodyBytes,
    requestTimeout: requestTimeoutMs,
    http: { connectionsCheckingInterval: Math.ceil(requestTimeoutMs / 4), headersTimeout: requestTimeoutMs },
    routerOptions: { maxParamLength: 256 },
    return503OnClosing: false,
    genReqId: () => randomUUID(),
    frameworkErrors: (error, request, reply) => void sendError(reply, toReplyError(error, log, request)),
    clientErrorHandler: replyToBrokenRequest,
  });
}

function hook(app: FastifyInstance, { config, log, metrics, draining }: AppContext): void {
  const guard = openGuard(config);
  app.addHook('onRequest', async (request) => guard(request));
  app.addHook('onSend', async (_request, reply) => {
    // A keep-alive connection would delay the close.
    if (draining.aborted) reply.header('connection', 'close');
  });
  app.addHook('onResponse', async (request, reply) => metrics.request(toLabels(request, reply), reply.elapsedTime));
  app.setErrorHandler((error, request, reply) => sendError(reply, toReplyError(error, log, request)));
  app.setNotFoundHandler(replyToUnknownRoute);
}

function toLabels(request: FastifyRequest, reply: FastifyReply) {
  const waits = request.url.includes('wait=') ? '?wait' : '';
  return { method: request.method, route: `${request.routeOptions.url ?? 'none'}${waits}`, status: reply.statusCode };
}
