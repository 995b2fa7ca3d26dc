// The groups of a batch: waiting for them, and writing them as a page of JSON, as a binary page, or as server-sent events, each once,
// with its seq as the event id, then `batch-end`. Trajectories are read one at a time, while the client reads.

import { type BatchId, type GroupPage, toGroupsPart, toGroupsStart } from '@millrace/protocol';
import type { GroupRecord, Store } from '@millrace/store';
import { missing, orLost, toGroupJson } from '../../batches/group-json.ts';
import { toGroupView } from '../../batches/group-view.ts';
import type { AppContext } from '../context/context.ts';
import { readBatchView, unknownBatch } from '../intake/batch-intake.ts';

const heartbeatMs = 15_000;
const groupsPerRead = 8;

interface GroupStream {
  readonly id: BatchId;
  readonly after: number;
  readonly trajectories: boolean;
  readonly signal: AbortSignal;
}

export async function* streamGroups({ id, after, trajectories, signal }: GroupStream, context: AppContext): AsyncGenerator<string> {
  yield ': open\n\n';
  let position = after;
  while (!signal.aborted && !context.draining.aborted) {
    const { groups, state } = await waitForGroups({ id, after: position, limit: groupsPerRead, waitMs: heartbeatMs, signal }, context);
    for (const group of groups) {
      yield `id: ${group.seq}\nevent: group\ndata: `;
      if (trajectories) yield* toGroupJson(group, context.store);
      else yield JSON.stringify(toGroupView(group));
      yield '\n\n';
      position = group.seq;
    }
    if (groups.length > 0) continue;
    if (state !== 'open') return yield `event: batch-end\ndata: ${JSON.stringify(await readBatchView(id, context))}\n\n`;
    yield ': alive\n\n';
  }
}

interface GroupWait {
  readonly id: BatchId;
  readonly after: number;
  readonly limit: number;
  /** Bounds the page, by the bytes that the store has of its trajectories. */
  readonly maxBytes?: number;
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

/** At least one group; empty after the wait, a disconnect, a drain or the end of the batch. */
export async function waitForGroups(
  { id, after, waitMs, signal, ...bounds }: GroupWait,
  context: AppContext,
): Promise<{ groups: readonly GroupRecord[]; state: GroupPage['state'] }> {
  const until = context.clock.monotonic() + waitMs;
  for (;;) {
    using watch = context.waiters.watchBatch(id);
    // Read the state before the groups: once the batch has ended, all of its groups are stored.
    const record = await context.store.batch(id);
    if (record === undefined) throw unknownBatch(id);
    const groups = await context.store.deliveredGroups(id, { after, ...bounds });
    const leftMs = until - context.clock.monotonic();
    const over = record.state !== 'open' || leftMs <= 0 || signal.aborted || context.draining.aborted;
    if (groups.length > 0 || over) return { groups, state: record.state };
    await watch.until({ ms: leftMs, signal });
  }
}

interface FoundGroups {
  readonly groups: readonly GroupRecord[];
  readonly next: number;
  readonly state: GroupPage['state'];
}

/** The JSON of a `GroupPage` with trajectories. */
export async function* toJsonPage({ groups, next, state }: FoundGroups, store: Pick<Store, 'trajectory'>): AsyncGenerator<string> {
  yield '{"groups":[';
  for (const [index, group] of groups.entries()) {
    if (index > 0) yield ',';
    yield* toGroupJson(group, store);
  }
  yield `],"next":${next},"state":${JSON.stringify(state)}}`;
}

export async function* toBinaryPage({ groups, next, state }: FoundGroups, store: Pick<Store, 'binaryTrajectory'>): AsyncGenerator<Buffer> {
  yield toGroupsStart({ groups: groups.map(toGroupView), next, state });
  for (const { id } of groups.flatMap(({ rollouts }) => rollouts)) {
    const read = (await orLost(store.binaryTrajectory(id), id)) ?? missing(id);
    yield* toGroupsPart('error' in read ? Buffer.from(JSON.stringify(read)) : read);
  }
}
