// The dashboard without a service: the same pages and the same routes on what lies at a path, for this machine only and without changing it.

import { findParts } from '@millrace/base/parts';
import { RolloutIndex } from '@millrace/dashboard';
import { dashboardRoutes, RolloutError, routes } from '@millrace/protocol';
import fastify, { type FastifyInstance } from 'fastify';
import { openGuard } from '../../request/auth.ts';
import { sendError } from '../../request/errors.ts';
import { mount } from '../../request/mount.ts';
import { mountStaticFiles } from '../static-files.ts';
import { openViewSource } from './open-source.ts';
import type { ViewSource, ViewSourceOptions } from './view-source.ts';

export interface Viewer extends AsyncDisposable {
  readonly url: string;
  readonly rollouts: number;
  /** Lines that hold no rollout. */
  readonly skipped: number;
}

export interface ViewerOptions extends ViewSourceOptions {
  readonly port: number;
}

/** Throws if nothing at the path can be read. */
export async function openViewer({ port, ...options }: ViewerOptions): Promise<Viewer> {
  await using stack = new AsyncDisposableStack();
  const source = stack.use(await openViewSource(options));
  const index = new RolloutIndex(() => performance.now());
  const skipped = await source.fill(index);
  index.markComplete();
  const app = fastify({ logger: false });
  stack.defer(() => app.close());
  const guard = openGuard({ keys: [], submitKeys: [], readKeys: [], workerKeys: [] });
  app.addHook('onRequest', async (request) => guard(request));
  app.setErrorHandler((error, _request, reply) =>
    sendError(reply, error instanceof RolloutError ? error : new RolloutError('internal', String(error))),
  );
  await mountStaticFiles(app, findParts().dashboard);
  mountSource(app, source, index);
  const url = await app.listen({ host: '127.0.0.1', port });
  const owned = stack.move();
  return { url, rollouts: index.size, skipped, [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose]() };
}

function mountSource(app: FastifyInstance, source: ViewSource, index: RolloutIndex): void {
  mount(app, dashboardRoutes.session, () => ({ right: 'read', live: false, title: source.title }));
  mount(app, dashboardRoutes.rollouts, ({ query }) => index.page(query));
  mount(app, dashboardRoutes.summary, () => index.summary());
  mount(app, dashboardRoutes.events, async ({ params: { id } }) => ({ events: await source.events(id) }));
  mount(app, dashboardRoutes.task, ({ params: { id } }) => source.task(id));
  mount(app, dashboardRoutes.pieces, async ({ params: { id } }) => source.pieces(await source.trajectory(id)));
  mount(app, routes.getRollout, ({ params: { id } }) => source.rollout(id));
  mount(app, routes.getTrajectory, ({ params: { id } }) => source.trajectory(id));
}
