// A running service as a place to export from: what the API gives, and what the dashboard's own routes add to it.

import type { Client } from '@millrace/client';
import {
  type DashboardTask,
  dashboardRoutes,
  dashboardTask,
  event,
  RolloutError,
  rolloutId,
  type TokenPieces,
  tokenPieces,
  toTrajectoryView,
} from '@millrace/protocol';
import type { ViewSource } from '@millrace/server';
import { z } from 'zod';

interface ServiceSourceOptions {
  readonly client: Client;
  readonly url: string;
  readonly key?: string;
}

/** The client stays the caller's. */
export function openServiceSource({ client, url, key }: ServiceSourceOptions): ViewSource {
  const read = async <T>(route: { readonly path: string }, id: string, schema: z.ZodType<T>): Promise<T> => {
    const path = route.path.replace('{id}', encodeURIComponent(id));
    const reply = await fetch(new URL(path, url), { headers: key === undefined ? {} : { authorization: `Bearer ${key}` } });
    if (reply.status === 404) throw new RolloutError('not-found', `the service has no ${path}`);
    if (!reply.ok)
      throw new RolloutError('internal', `the service answered ${reply.status} to ${path}: ${(await reply.text()).slice(0, 300)}`);
    return schema.parse(await reply.json());
  };
  const { task, events, pieces } = dashboardRoutes;
  return {
    title: url,
    async fill(index) {
      for await (const view of client.list()) index.set(view);
      return 0;
    },
    rollout: (id) => client.get(id),
    trajectory: async (id) => toTrajectoryView(await client.trajectory(id)),
    task: (id): Promise<DashboardTask> => read(task, id, dashboardTask),
    events: async (id) => (await read(events, id, z.object({ events: z.array(event) }))).events,
    pieces: ({ rollout_id }): Promise<TokenPieces> => read(pieces, rolloutId.parse(rollout_id), tokenPieces),
    async [Symbol.asyncDispose]() {},
  };
}
