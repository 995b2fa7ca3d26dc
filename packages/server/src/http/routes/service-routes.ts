// The routes for monitoring: events, status, machines, health, readiness, metrics and the OpenAPI document; and what a worker needs to join.

import { sleep } from '@millrace/base/clock';
import { messageOf, RolloutError, routes } from '@millrace/protocol';
import { StoreError } from '@millrace/store';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { type AppContext, closedSignal } from '../context/context.ts';
import { isAlive } from '../context/status.ts';
import { checkIntake } from '../intake/intake.ts';
import { check } from '../request/check.ts';
import { mount, type RouteInput } from '../request/mount.ts';
import { sendEvents } from '../request/send-events.ts';
import { toOpenapi } from './openapi.ts';

const readyWithinMs = 2000;
const readyRetryMs = 5000;

export function mountService(app: FastifyInstance, context: AppContext): void {
  const document = toOpenapi(routes);
  mount(app, routes.readEvents, (input) => readEvents(input, context));
  mount(app, routes.getStatus, () => context.status.read());
  mount(app, routes.listMachines, async () => ({ machines: (await context.status.read()).machines ?? [] }));
  mount(app, routes.getJoin, ({ query }) => context.workerSettings(query.wire));
  mount(app, routes.getHealth, () => ({ status: 'ok' }));
  mount(app, routes.getReadiness, openReadiness(context));
  mount(app, routes.getMetrics, async ({ reply }) => {
    reply.type('text/plain; version=0.0.4; charset=utf-8');
    return context.metrics.render(await context.status.read(), context.leadership);
  });
  mount(app, routes.getOpenapi, () => document);
}

async function readEvents({ query, request, reply }: RouteInput<typeof routes.readEvents>, context: AppContext) {
  checkIntake(context);
  const seen = request.headers['last-event-id'];
  const resumed = seen === undefined ? undefined : await check(z.coerce.number().int().min(0), seen, { at: ['Last-Event-ID'] });
  const after = resumed ?? query.after ?? (await context.store.lastEventId());
  const oldest = await context.store.oldestEventId();
  if (after > 0 && after + 1 < oldest) throw goneEvents(after, oldest);
  return sendEvents(reply, context.feed.stream(after, closedSignal(reply)));
}

function goneEvents(after: number, oldest: number): RolloutError {
  const message = `the events after ${after} are no longer kept: the oldest is ${oldest}; read on with after=${oldest - 1}, and read again what you follow`;
  return new RolloutError('gone', message, { details: { oldest } });
}

/** It writes to the store and needs no key, so all that ask at the same time share one answer. */
function openReadiness(context: AppContext): () => Promise<{ status: 'ok' }> {
  let asked: Promise<string[]> | undefined;
  return async () => {
    asked ??= findMissing(context).finally(() => {
      asked = undefined;
    });
    const missing = await asked;
    if (missing.length === 0) return { status: 'ok' };
    throw new RolloutError('not-running', `not ready: ${missing.join(', ')}`, { details: { missing, retry_after_ms: readyRetryMs } });
  };
}

async function findMissing(context: AppContext): Promise<string[]> {
  const { store, clock, draining } = context;
  const finished = new AbortController();
  const late = sleep(readyWithinMs, { clock, signal: finished.signal }).then(
    () => undefined,
    () => undefined,
  );
  const [workers, storeFault] = await Promise.all([
    Promise.race([store.workers().catch(() => undefined), late]),
    Promise.race([findStoreFault(context), late.then(() => 'the store does not respond')]),
  ]);
  finished.abort();
  return [
    ...(storeFault === undefined ? [] : [storeFault]),
    ...(workers?.some((worker) => isAlive(worker, clock)) === false ? ['no live worker'] : []),
    ...(draining.aborted ? ['the service is shutting down'] : []),
  ];
}

/** Why the store cannot be written, or accepts nothing new; undefined if it does. */
async function findStoreFault({ store, log }: AppContext): Promise<string | undefined> {
  try {
    const { full } = await store.checkHealth();
    return full === undefined ? undefined : `the store is full: ${full}`;
  } catch (error) {
    log.error('store-check-failed', { error: messageOf(error) });
    return error instanceof StoreError ? error.publicMessage : 'the store does not respond';
  }
}
