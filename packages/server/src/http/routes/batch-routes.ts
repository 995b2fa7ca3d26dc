// The batch routes: create, get, list, append tasks, read the stream of groups, acknowledge, cancel.

import { definedOf, type GroupPage, groupsMediaType, RolloutError, routes } from '@millrace/protocol';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { toBatchView, toGroupView } from '../../batches/group-view.ts';
import { type AppContext, closedSignal } from '../context/context.ts';
import { appendTasks, createBatch, readBatchView, unknownBatch } from '../intake/batch-intake.ts';
import { chooseMediaType } from '../request/accept.ts';
import { check } from '../request/check.ts';
import { mount, type RouteInput } from '../request/mount.ts';
import { sendPieces } from '../request/send-pieces.ts';
import { streamGroups, toBinaryPage, toJsonPage, waitForGroups } from './group-stream.ts';

/** Trajectories take up to this many times as much space as JSON. */
const jsonFactor = 8;
const groupForms = ['application/json', groupsMediaType, 'text/event-stream'];

export function mountBatches(app: FastifyInstance, context: AppContext): void {
  mount(app, routes.createBatch, ({ body }) => createBatch(body, context));
  mount(app, routes.listBatches, ({ query }) => listBatches(query, context));
  mount(app, routes.getBatch, (input) => getBatch(input, context));
  mount(app, routes.appendTasks, ({ params: { id }, body }) => appendTasks(id, body, context));
  mount(app, routes.readGroups, (input) => readGroups(input, context));
  mount(app, routes.ackGroups, async ({ params: { id }, body: { consumer, through } }) => {
    const now = await context.store.ack(id, consumer, through);
    if (now === undefined) throw unknownBatch(id);
    return { consumer, through: now };
  });
  mount(app, routes.resumeBatch, async ({ params: { id } }) => {
    const outcome = await context.store.resumeBatch(id);
    if (outcome === 'unknown') throw unknownBatch(id);
    if (outcome === 'ended') throw new RolloutError('conflict', `batch ${id} has ended: it cannot be resumed`);
    return readBatchView(id, context);
  });
  mount(app, routes.cancelBatch, async ({ params: { id } }) => {
    await context.store.endBatch(id, 'cancelled');
    return readBatchView(id, context);
  });
}

async function listBatches(query: RouteInput<typeof routes.listBatches>['query'], { store }: AppContext) {
  const { batches, next } = await store.batches(definedOf(query));
  return { batches: batches.map(toBatchView), next: next ?? null };
}

async function getBatch({ params: { id }, query: { wait }, reply }: RouteInput<typeof routes.getBatch>, context: AppContext) {
  const signal = closedSignal(reply);
  const until = context.clock.monotonic() + wait * 1000;
  for (;;) {
    using watch = context.waiters.watchBatch(id);
    const view = await readBatchView(id, context);
    const leftMs = until - context.clock.monotonic();
    if (view.state !== 'open' || leftMs <= 0 || signal.aborted || context.draining.aborted) return view;
    await watch.until({ ms: leftMs, signal });
  }
}

async function readGroups({ params: { id }, query, request, reply }: RouteInput<typeof routes.readGroups>, context: AppContext) {
  const form = chooseMediaType(request.headers.accept, groupForms);
  if (form === undefined)
    throw new RolloutError('not-acceptable', `groups are available as ${groupForms.join(', ')}, not as ${request.headers.accept}`);
  const seen = form === 'text/event-stream' ? request.headers['last-event-id'] : undefined;
  const resumed = seen === undefined ? undefined : await check(z.coerce.number().int().min(0), seen, { at: ['Last-Event-ID'] });
  const acked = query.consumer === undefined ? 0 : await context.store.acked(id, query.consumer);
  const after = resumed ?? query.after ?? acked;
  const signal = closedSignal(reply);
  if (form === 'text/event-stream') {
    if ((await context.store.batch(id)) === undefined) throw unknownBatch(id);
    reply.type(form).headers({ 'cache-control': 'no-cache', 'x-accel-buffering': 'no', connection: 'close' });
    const stream = streamGroups({ id, after, trajectories: query.trajectories === 'true', signal }, context);
    return sendPieces(reply, stream, context.log);
  }
  const binary = form === groupsMediaType;
  const full = binary || query.trajectories === 'true';
  const maxBytes = full ? context.config.maxPageBytes / (binary ? 1 : jsonFactor) : undefined;
  const waitMs = query.wait * 1000;
  const { groups, state } = await waitForGroups({ id, after, waitMs, signal, ...definedOf({ limit: query.limit, maxBytes }) }, context);
  const found = { groups, next: groups.at(-1)?.seq ?? after, state };
  reply.type(form).header('vary', 'accept');
  if (!full) return reply.send({ ...found, groups: groups.map(toGroupView) } satisfies GroupPage);
  return sendPieces(reply, binary ? toBinaryPage(found, context.store) : toJsonPage(found, context.store), context.log);
}
