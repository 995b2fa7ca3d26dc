// The rollout routes: submit, get, wait, list, read the trajectory, fork, cancel.

import {
  definedOf,
  isTerminal,
  RolloutError,
  type RolloutId,
  type RolloutList,
  type RolloutView,
  routes,
  trajectoryMediaType,
} from '@millrace/protocol';
import { type RolloutRecord, toRolloutView } from '@millrace/store';
import type { FastifyInstance } from 'fastify';
import { toTrajectoryJson } from '../../batches/group-json.ts';
import { type AppContext, closedSignal, tombstoneMs } from '../context/context.ts';
import { toWaitingViews } from '../context/waiting.ts';
import { forkRollout, listTurns } from '../intake/fork.ts';
import { checkIntake, readSubmissions, retryRollout, submitAll, unknownRollout } from '../intake/intake.ts';
import { chooseMediaType } from '../request/accept.ts';
import { callerOf } from '../request/auth.ts';
import { mount, mountUnchecked, type RouteInput } from '../request/mount.ts';
import { sendPieces } from '../request/send-pieces.ts';

export function mountRollouts(app: FastifyInstance, context: AppContext): void {
  const { store } = context;
  mountUnchecked(app, routes.submitRollouts, async ({ body, query, request }) => {
    checkIntake(context);
    const rollouts = await readSubmissions(body, context);
    if (query.check === 'true') return { rollouts: [] };
    return submitAll(rollouts, context, callerOf(request, context.config));
  });
  mount(app, routes.listRollouts, ({ query }) => listRollouts(query, context));
  mount(app, routes.getRollout, (input) => getRollout(input, context));
  mount(app, routes.getTrajectory, (input) => getTrajectory(input, context));
  mount(app, routes.retryRollout, async ({ params: { id }, request }) =>
    toRolloutView(await retryRollout(id, context, callerOf(request, context.config))),
  );
  mount(app, routes.listTurns, async ({ params: { id } }) => ({ turns: await listTurns(id, context) }));
  mount(app, routes.forkRollout, ({ params: { id }, body, request }) =>
    forkRollout(id, { request: body, caller: callerOf(request, context.config) }, context),
  );
  mount(app, routes.cancelRollout, async ({ params: { id } }) => ({ id, cancel: await store.cancel(id, { tombstoneMs }) }));
}

/** The record when the rollout ends, or its current record after `ms`, a disconnect or a drain; absent when the id is unknown. */
export async function waitForEnd(
  id: RolloutId,
  options: { readonly ms?: number; readonly signal: AbortSignal },
  { store, waiters }: AppContext,
): Promise<RolloutRecord | undefined> {
  using watch = waiters.watch(id);
  const record = await store.get(id);
  if (record === undefined || isTerminal(record.state)) return record;
  await watch.until(options);
  return store.get(id);
}

async function listRollouts(query: RouteInput<typeof routes.listRollouts>['query'], context: AppContext): Promise<RolloutList> {
  const { rollouts, next } = await context.store.list(definedOf(query));
  return { rollouts: await toWaitingViews(rollouts, context), next: next ?? null };
}

async function getRollout(
  { params: { id }, query: { wait }, reply }: RouteInput<typeof routes.getRollout>,
  context: AppContext,
): Promise<RolloutView> {
  const record = await (wait === 0 ? context.store.get(id) : waitForEnd(id, { ms: wait * 1000, signal: closedSignal(reply) }, context));
  if (record === undefined) throw unknownRollout(id);
  const [view = toRolloutView(record)] = await toWaitingViews([record], context);
  return view;
}

async function getTrajectory({ params: { id }, request, reply }: RouteInput<typeof routes.getTrajectory>, { store, log }: AppContext) {
  const mediaType = chooseMediaType(request.headers.accept, ['application/json', trajectoryMediaType]);
  if (mediaType === undefined)
    throw new RolloutError(
      'not-acceptable',
      `a trajectory is available as application/json or ${trajectoryMediaType}, not as ${request.headers.accept}`,
    );
  reply.header('vary', 'accept');
  if (mediaType === trajectoryMediaType) {
    const bytes = await store.binaryTrajectory(id);
    if (bytes === undefined) throw withoutTrajectory(id, await store.get(id));
    return reply.type(mediaType).send(bytes);
  }
  const trajectory = await store.trajectory(id);
  if (trajectory === undefined) throw withoutTrajectory(id, await store.get(id));
  return sendPieces(reply.type(mediaType), toTrajectoryJson(trajectory), log);
}

function withoutTrajectory(id: RolloutId, record: RolloutRecord | undefined): RolloutError {
  if (record === undefined) return unknownRollout(id);
  const { state } = record;
  const ended = isTerminal(state);
  const message = ended ? `rollout ${id} ended as ${state} without a trajectory` : `rollout ${id} has not ended: it is in ${state}`;
  return new RolloutError('not-found', message, { details: { reason: ended ? 'none' : 'not-ended', state } });
}
