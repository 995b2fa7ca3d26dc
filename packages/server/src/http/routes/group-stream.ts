// Waiting for the groups of a batch, and streaming them as server-sent events: each once, with its seq as the event id, then `batch-end`.

import type { BatchId, GroupPage } from '@millrace/protocol';
import { toFullGroupView, toGroupView } from '../../sampling/group-view.ts';
import type { GroupRecord } from '../../store/batch-store.ts';
import type { AppContext } from '../context/context.ts';
import { readBatchView, unknownBatch } from '../intake/batch-intake.ts';

const heartbeatMs = 15_000;
const groupsPerRead = 8;

export interface GroupStream {
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
      const view = trajectories ? await toFullGroupView(group, context.store) : toGroupView(group);
      yield `id: ${group.seq}\nevent: group\ndata: ${JSON.stringify(view)}\n\n`;
      position = group.seq;
    }
    if (groups.length > 0) continue;
    if (state !== 'open') return yield `event: batch-end\ndata: ${JSON.stringify(await readBatchView(id, context))}\n\n`;
    yield ': alive\n\n';
  }
}

export interface GroupWait {
  readonly id: BatchId;
  readonly after: number;
  readonly limit: number;
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

/** At least one group; empty after the wait, a disconnect, a drain or the end of the batch. */
export async function waitForGroups(
  { id, after, limit, waitMs, signal }: GroupWait,
  context: AppContext,
): Promise<{ groups: readonly GroupRecord[]; state: GroupPage['state'] }> {
  const until = context.clock.monotonic() + waitMs;
  for (;;) {
    using watch = context.waiters.watchBatch(id);
    // Read the state before the groups: once the batch has ended, all of its groups are stored.
    const record = await context.store.batch(id);
    if (record === undefined) throw unknownBatch(id);
    const groups = await context.store.deliveredGroups(id, { after, limit });
    const leftMs = until - context.clock.monotonic();
    const over = record.state !== 'open' || leftMs <= 0 || signal.aborted || context.draining.aborted;
    if (groups.length > 0 || over) return { groups, state: record.state };
    await watch.until({ ms: leftMs, signal });
  }
}
