// Runs rollouts through a store as workers and a batch keeper would, without the work: thousands per second, so that a history of weeks
// is there in a minute. Time passes only when the caller says so.

import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { zstdCompress } from 'node:zlib';
import { type Trajectory, toBinary, workerId } from '@millrace/protocol';
import { makeBatch, makeGroup, makeRandom, makeResult, makeRollout, makeTrajectory, toBatch } from '@millrace/testkit';
import { type Clock, systemClock } from '../../packages/base/src/clock.ts';
import type { ClaimedRollout, Store } from '../../packages/store/src/store.ts';

/** The system's clock, and whole days that pass at once: date and elapsed time move together, so that nothing looks like a step. */
export class PassingClock implements Clock {
  #passedMs = 0;

  pass(ms: number): void {
    this.#passedMs += ms;
  }

  now(): number {
    return systemClock.now() + this.#passedMs;
  }

  monotonic(): number {
    return systemClock.monotonic() + this.#passedMs;
  }

  after(ms: number, callback: () => void): () => void {
    return systemClock.after(ms, callback);
  }
}

const chunk = 1024;
const groupSize = 16;
const sampledTokens = 200;
const leaseMs = 365 * 86_400_000;

/** Every other chunk is a batch that is met. */
export async function runHistory(store: Store, { prefix, count }: { readonly prefix: string; readonly count: number }): Promise<void> {
  const worker = workerId.parse(`w-${prefix}`);
  await store.registerWorker({ id: worker, host: 'bench', pid: 1 }, { leaseMs });
  for (let done = 0; done < count; done += chunk) {
    const name = `${prefix}-${done}`;
    const size = Math.min(chunk, count - done);
    if ((done / chunk) % 2 === 0) await submitPlain(store, name, size);
    else await beginBatch(store, name, Math.floor(size / groupSize));
    const claims = await store.claim(worker, size);
    await Promise.all(claims.map((claim) => runOne(store, claim)));
    if ((done / chunk) % 2 === 1) await settleBatch(store, name);
    await setImmediate();
  }
  await store.dropWorker(worker, { maxLosses: 1 });
}

async function submitPlain(store: Store, name: string, size: number): Promise<void> {
  const rollouts = Array.from({ length: size }, (_, index) => makeRollout(`${name}-${index}`));
  await store.submit(rollouts, { maxQueued: 1_000_000 });
}

async function beginBatch(store: Store, name: string, groups: number): Promise<void> {
  await store.createBatch(makeBatch(name, { count: groups, target: groups, group_size: groupSize }));
  for (let begun = 0; begun < groups; begun += 1) await store.beginGroup(makeGroup(name, begun, groupSize));
}

async function runOne(store: Store, claim: ClaimedRollout): Promise<void> {
  // Sent together: the writer runs them in this order, in one transaction with those of the other rollouts.
  const moved = (['ready', 'run', 'evaluate'] as const).map((state) => store.move(claim, state));
  const trajectory = makeLongTrajectory(claim.id);
  await Promise.all([...moved, store.finish(claim, { state: 'done', result: makeResult(1), trajectory })]);
}

async function settleBatch(store: Store, name: string): Promise<void> {
  const batch = toBatch(name);
  const open = await store.openGroups(batch);
  const settled = open.map(({ id, siblings }) =>
    store.settleGroup({ batch, group: id, state: 'delivered', members: siblings.map((sibling) => sibling.id) }),
  );
  await Promise.all(settled);
  const left = (await store.batch(batch))?.state;
  if (left !== 'met') throw new Error(`batch ${name} is ${left} after ${open.length} groups`);
}

const random = makeRandom(1);

/** Ids and logprobs as random as those of a model, for a realistic size. */
function makeLongTrajectory(id: string): Trajectory {
  const trajectory = makeTrajectory(id, 1);
  return {
    ...trajectory,
    segments: trajectory.segments.map((segment) => {
      if (segment.kind !== 'sampled') return segment;
      const tokenIds = Int32Array.from({ length: sampledTokens }, () => Math.floor(150_000 * random() ** 4));
      const logprobs = Float32Array.from({ length: sampledTokens }, () => Math.log(1 - random()));
      return { ...segment, tokenIds, logprobs };
    }),
  };
}

/** As the store keeps them. */
export async function bytesPerSampledToken(): Promise<number> {
  const compressed = await promisify(zstdCompress)(toBinary(makeLongTrajectory('a')));
  return compressed.length / sampledTokens;
}
