// A store without its service: read as it is, also while a service uses it, and never changed.

import { RolloutError, type RolloutId, rolloutId, toTrajectoryView } from '@millrace/protocol';
import { openBlobs, openStoreReader, toRolloutView } from '@millrace/store';
import { readRolloutEvents } from '../rollout-events.ts';
import { toSubmissionView } from '../submission-view.ts';
import { openPieces } from '../token-pieces.ts';
import type { ViewSource } from './view-source.ts';

interface StoreSourceOptions {
  readonly path: string;
  readonly tokenizer: string | undefined;
  readonly blobs: string;
}

const pageSize = 500;

/** Throws if it is no store, or one of another version. */
export async function openStoreSource({ path, tokenizer, blobs }: StoreSourceOptions): Promise<ViewSource> {
  const store = await openStoreReader(path, await openBlobs(blobs, process.env));
  const pieces = openPieces(tokenizer);
  const missing = (what: string, id: string) => new RolloutError('not-found', `${path} has no ${what} ${id}`);
  const find = async (id: string) => {
    const record = await store.get(rolloutId.parse(id));
    if (record === undefined) throw missing('rollout', id);
    return record;
  };
  return {
    title: path,
    async fill(index) {
      let after: string | undefined;
      do {
        const page = await store.list({ limit: pageSize, ...(after === undefined ? {} : { after }) });
        for (const record of page.rollouts) index.set(toRolloutView(record));
        after = page.next;
      } while (after !== undefined);
      return 0;
    },
    rollout: async (id) => toRolloutView(await find(id)),
    async trajectory(id) {
      const trajectory = await store.trajectory(id as RolloutId);
      if (trajectory === undefined) throw missing('trajectory of', id);
      return toTrajectoryView(trajectory);
    },
    task: async (id) => toSubmissionView((await find(id)).submission),
    events: async (id) => readRolloutEvents(store, await find(id)),
    pieces: ({ segments }) => pieces.read(segments.map(({ token_ids }) => token_ids)),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}
