// No bias by length: where machines come and go until half of all long attempts are lost, the rollouts that reach the trainer are those of
// a quiet run. The policy, the lengths and the losses are fixed by a seed.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import type { Scenario } from '@millrace/scenarios';
import { renderCall } from '@millrace/testkit';
import { z } from 'zod';
import type { Worker } from '../../packages/worker/src/pipeline/worker.ts';
import { finish, WorkerBed } from '../../packages/worker/test/pipeline/worker-bed.ts';

const rollouts = 24;
const lengths = { short: 3, long: 24 };
const workers = 4;
const maxLosses = 10;
/** For each turn: half of the attempts with the long length reach their end. */
const hazard = 1 - 0.5 ** (1 / lengths.long);

const task = z.strictObject({ turns: z.int(), reward: z.number() });
const scenario: Scenario<z.infer<typeof task>> = {
  name: 'lengths',
  task,
  init: async ({ task: { turns } }) => ({ messages: [{ role: 'user', content: `turns=${turns};` }], tools: ['think', 'finish'] }),
  evaluate: async ({ task: { reward } }) => ({ reward }),
};

const tasks = Array.from({ length: rollouts }, (_, index) => ({
  turns: index % 2 === 0 ? lengths.long : lengths.short,
  reward: index % 3 === 0 ? 1 : 0,
}));

/** The same number in [0, 1) for the same words. */
function chance(...words: readonly unknown[]): number {
  return createHash('sha256').update(words.join(' ')).digest().readUInt32LE(0) / 2 ** 32;
}

interface Seen {
  /** `turns reward`, or why there is none, in the order of the tasks. */
  readonly ends: string[];
  readonly losses: number;
  /** Turns that were sampled more than once, as a share of all that were needed. */
  readonly again: number;
}

async function run(options: { readonly loses: boolean; readonly withoutShelf?: true }): Promise<Seen> {
  const held = new Map<string, Worker>();
  const times = new Map<string, number>();
  let losses = 0;
  const policy = ({ turn, sessionId = '', opening }: { turn: number; sessionId: string | undefined; opening(): string }) => {
    const key = `${sessionId} ${turn}`;
    times.set(key, (times.get(key) ?? 0) + 1);
    if (options.loses && chance('seed', key, times.get(key)) < hazard) void lose(sessionId);
    const turns = Number(/turns=(\d+);/.exec(opening())?.[1]);
    return { text: turn + 1 < turns ? renderCall('think', { thought: `${turn}` }) : finish() };
  };
  const { loses: _, ...more } = options;
  const pipeline = { runSlots: 1, readySlots: 1, initSlots: 1, maxLosses };
  await using bed = await WorkerBed.open({ policy, latencyMs: 60, scenarios: [scenario], pipeline, ...more });
  const start = async () => {
    const worker = await bed.startWorker();
    held.set(worker.id, worker);
  };
  const lose = async (id: string) => {
    const { worker = '' } = (await bed.store.list({ prefix: id, limit: 1 })).rollouts[0] ?? {};
    const lost = held.get(worker);
    if (!lost || !held.delete(worker)) return;
    losses += 1;
    await bed.store.dropWorker(lost.id, { maxLosses });
    void lost[Symbol.asyncDispose]();
    await start();
  };
  for (let count = 0; count < workers; count += 1) await start();
  const ids = await bed.submitAll(...tasks.map((one, index) => ({ id: `r${index + 10}`, scenario: 'lengths', task: one })));
  const ends: string[] = [];
  for (const id of ids) {
    const { result, failure } = await bed.ended(id);
    ends.push(failure ? failure.code : `${result?.turns} ${result?.reward}`);
  }
  const needed = tasks.reduce((sum, { turns }) => sum + turns, 0);
  const sampled = [...times.values()].reduce((sum, one) => sum + one, 0);
  return { ends, losses, again: sampled / needed - 1 };
}

test('the rollouts that end under losses are those of a quiet run, in length and reward', { timeout: 180_000 }, async (context) => {
  const quiet = await run({ loses: false });
  assert.deepEqual(
    quiet.ends,
    tasks.map(({ turns, reward }) => `${turns} ${reward}`),
  );
  const lossy = await run({ loses: true });
  assert.ok(lossy.losses >= 5, `${lossy.losses} workers were lost`);
  assert.deepEqual(lossy.ends, quiet.ends);
  const before = await run({ loses: true, withoutShelf: true });
  const share = ({ ends }: Seen) =>
    ends.filter((end) => end.startsWith(`${lengths.long} `)).length / ends.filter((end) => / /.test(end)).length;
  const describe = (seen: Seen) =>
    `${seen.losses} losses, ${share(seen).toFixed(2)} of the rewards from long rollouts, ${(100 * seen.again).toFixed(0)} % of turns sampled again`;
  context.diagnostic(`quiet: ${describe(quiet)}; with losses: ${describe(lossy)}; if attempts begin again: ${describe(before)}`);
});
