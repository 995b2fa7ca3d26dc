// The order of retention: plain rollouts and events, then groups whose outcome is kept for less time than their batch, then whole
// batches and evaluations. Each step is one short write, and other writes run in between.

import type { GroupState } from '@millrace/protocol';
import type { RetentionAges } from '../retention-ages.ts';
import type { RetainedSlice } from './operations/retention.ts';
import type { Reads, Writes } from './operations.ts';

type Slices = 'retainSlice' | 'retainTrainerSlice' | 'retainBatchSlice' | 'retainGroupSlice' | 'retainEvaluationSlice';
type Searches = 'expiredBatches' | 'expiredGroups' | 'expiredEvaluations';

export interface RetentionCalls {
  readonly asOfMs: number;
  write<Name extends Slices>(name: Name, request: Parameters<Writes[Name]>[1]): Promise<RetainedSlice>;
  read<Name extends Searches>(name: Name, request: Parameters<Reads[Name]>[1]): Promise<readonly number[]>;
}

/** Steps of trainers are small, and a curve over a long run needs all of them. */
const trainerStepsFactor = 10;

export function longestAge(ages: RetentionAges): number {
  return Math.max(ages.endedMs, ages.eventsMs, ages.textMs ?? 0, ...Object.values(ages.outcomes ?? {}));
}

/** Returns the number of rollouts deleted. */
export async function runRetention(ages: RetentionAges, calls: RetentionCalls): Promise<number> {
  const { asOfMs, read, write } = calls;
  const { endedMs, eventsMs, outcomes = {} } = ages;
  const { plain = endedMs, delivered = endedMs, uniform = endedMs, failed = endedMs, surplus = endedMs } = outcomes;
  const byState: [GroupState, number][] = [
    ['uniform', uniform],
    ['failed', failed],
    ['surplus', surplus],
    ['stale', surplus],
    ['delivered', delivered],
  ];
  const batchMs = Math.max(delivered, uniform, failed, surplus);
  let deleted = await repeat(() => write('retainSlice', { plainMs: plain, eventsMs, asOfMs }));
  const trained = { samplesBeforeMs: asOfMs - endedMs, stepsBeforeMs: asOfMs - trainerStepsFactor * endedMs };
  await repeat(() => write('retainTrainerSlice', trained));
  for (const [state, ageMs] of byState.filter(([, ms]) => ms < batchMs))
    deleted += await drain(
      () => read('expiredGroups', { state, asOfMs, ageMs }),
      (seq) => write('retainGroupSlice', seq),
    );
  deleted += await drain(
    () => read('expiredBatches', { endedMs: batchMs, asOfMs }),
    (seq) => write('retainBatchSlice', seq),
  );
  deleted += await drain(
    () => read('expiredEvaluations', { endedMs, asOfMs }),
    (seq) => write('retainEvaluationSlice', seq),
  );
  return deleted;
}

/** Removes all that is found, until nothing is. */
async function drain(find: () => Promise<readonly number[]>, slice: (seq: number) => Promise<RetainedSlice>): Promise<number> {
  for (let deleted = 0; ; ) {
    const found = await find();
    for (const seq of found) deleted += await repeat(() => slice(seq));
    if (found.length === 0) return deleted;
  }
}

/** Repeats one kind of slice until nothing is left. */
async function repeat(slice: () => Promise<RetainedSlice>): Promise<number> {
  for (let deleted = 0; ; ) {
    const { rollouts, more } = await slice();
    deleted += rollouts;
    if (!more) return deleted;
  }
}
