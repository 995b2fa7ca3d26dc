// The dashboard: its files, and the few routes that only it reads.

import { findParts } from '@millrace/base/parts';
import { dashboardRoutes, RolloutError } from '@millrace/protocol';
import type { FastifyInstance } from 'fastify';
import { type AppContext, closedSignal } from '../context/context.ts';
import { checkIntake, unknownRollout } from '../intake/intake.ts';
import { findRight } from '../request/auth.ts';
import { mount } from '../request/mount.ts';
import { sendEvents } from '../request/send-events.ts';
import { LiveIndex } from './live-index.ts';
import { readRolloutEvents } from './rollout-events.ts';
import { mountStaticFiles } from './static-files.ts';
import { toSubmissionView } from './submission-view.ts';
import { openPieces } from './token-pieces.ts';

/** A page reads the state at most once a second. */
const liveEveryMs = 500;

/** The result follows the event log. */
export async function mountDashboard(app: FastifyInstance, context: AppContext): Promise<LiveIndex> {
  const { store, config } = context;
  const index = new LiveIndex(context);
  const pieces = openPieces(context.tokenizer);
  await mountStaticFiles(app, findParts().dashboard);
  mount(app, dashboardRoutes.session, ({ request }) => ({ right: findRight(request, config), live: true, title: context.server }));
  mount(app, dashboardRoutes.rollouts, ({ query }) => index.open().page(query));
  mount(app, dashboardRoutes.live, ({ reply }) => {
    checkIntake(context);
    return sendEvents(reply, context.feed.glance(liveEveryMs, closedSignal(reply)));
  });
  mount(app, dashboardRoutes.summary, () => index.open().summary());
  mount(app, dashboardRoutes.task, async ({ params: { id } }) => {
    const record = await store.get(id);
    if (record === undefined) throw unknownRollout(id);
    return toSubmissionView(record.submission);
  });
  mount(app, dashboardRoutes.events, async ({ params: { id } }) => {
    const record = await store.get(id);
    if (record === undefined) throw unknownRollout(id);
    return { events: await readRolloutEvents(store, record) };
  });
  mount(app, dashboardRoutes.pieces, async ({ params: { id } }) => {
    const trajectory = await store.trajectory(id);
    if (trajectory === undefined) throw new RolloutError('not-found', `rollout ${id} has no trajectory`);
    return pieces.read(trajectory.segments.map(({ tokenIds }) => tokenIds));
  });
  return index;
}
