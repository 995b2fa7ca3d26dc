// The chaos run of rollouts that continue: long ones with files and shell state, and one death of a worker for every twenty of their turns. Each
// ends whole, and little is sampled again; the same deaths, if attempts begin again, are shown next to it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { probeBubblewrap } from '@millrace/sandbox';
import { findWrongToken, openFakeBackend, type Policy, qwen3Folder, renderCall, TestService } from '@millrace/testkit';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;

const rollouts = 12;
const turns = 40;
const workers = 2;
const turnMs = 2000;
const kills = 4;
/** Each worker dies once in twenty turns of its rollouts. */
const killEvery = (20 * rollouts) / workers;
const lookMs = 100;
const mostAgain = 0.08;

const step = (turn: number) =>
  renderCall('bash', {
    command: `((n += 1)); echo ${turn} >>steps; [[ $n == ${turn + 1} && $(wc -l <steps) == ${turn + 1} && $(tail -1 steps) == ${turn} ]] && echo ok || echo BAD`,
  });

interface ChaosRun {
  readonly losses: number;
  readonly continued: number;
  /** Turns sampled more than once, as a share of those needed. */
  readonly again: number;
}

async function run(checkpointsGib: number): Promise<ChaosRun> {
  let sampled = 0;
  const policy: Policy = ({ turn }) => {
    sampled += 1;
    return { text: turn < turns ? step(turn) : renderCall('finish', {}) };
  };
  await using backend = await openFakeBackend({ policy, latencyMs: turnMs, keep: 0 });
  const pipeline = { leaseMs: 3000, maxLosses: 100, retryDelayMs: 0, checkpointsGib };
  await using service = await TestService.open({ workers, tokenizer: qwen3Folder(), pipeline });
  const { client } = service;
  await client.backends.join({ url: backend.url, dialect: 'vllm' });
  const task = { instruction: 'do it', check: `test $(wc -l <steps) = ${turns}` };
  const ids = Array.from({ length: rollouts }, (_, index) => `c-${index}`);
  await client.submit(ids.map((id) => ({ id, scenario: 'shell', task })));
  for (let killed = 0; killed < kills; killed += 1) {
    for (const from = sampled; sampled < from + killEvery; ) await pause(lookMs);
    const { workers: all } = await client.status();
    const busiest = all.filter(({ alive }) => alive).sort((a, b) => (b.report?.held ?? 0) - (a.report?.held ?? 0))[0];
    if (busiest) process.kill(busiest.pid, 'SIGKILL');
  }
  let [losses, continued] = [0, 0];
  for (const id of ids) {
    const { state, reward, result, failure, failures } = await client.wait(id);
    assert.deepEqual([state, reward, result?.turns], ['done', 1, turns + 1], JSON.stringify(failure));
    losses += failures.length;
    continued += result?.continued?.times ?? 0;
    const trajectory = await client.trajectory(id);
    assert.deepEqual(findWrongToken(trajectory), []);
    assert.ok(!trajectory.segments.some(({ kind, text }) => kind === 'observation' && text.includes('BAD')), id);
  }
  return { losses, continued, again: sampled / (rollouts * (turns + 1)) - 1 };
}

test('a death costs a rollout little more than the turn in flight', { skip, timeout: 1_200_000 }, async () => {
  const saved = await run(20);
  const describe = ({ losses, continued, again }: ChaosRun) =>
    `${losses} losses, continued ${continued} times, ${(100 * again).toFixed(1)} % of the turns sampled again`;
  console.log(`saved: ${describe(saved)}`);
  const begun = await run(0);
  console.log(`if attempts begin again: ${describe(begun)}`);
  assert.ok(saved.losses >= rollouts && saved.continued >= rollouts, `deaths hit them all, about once: ${describe(saved)}`);
  assert.ok(saved.again <= mostAgain, describe(saved));
});
