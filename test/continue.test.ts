// A service whose workers are killed again and again: rollouts go on after the last saved turn, with every token, file and variable as if
// nothing had happened.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { probeBubblewrap } from '@millrace/sandbox';
import { findWrongToken, openFakeBackend, type Policy, qwen3Folder, renderCall, TestService } from '@millrace/testkit';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;

const rollouts = 6;
const turns = 20;
const kills = 3;
const lookMs = 250;

/** Each turn checks the file and the variable that the turns before it left. */
const step = (turn: number) =>
  renderCall('bash', {
    command: `((n += 1)); echo ${turn} >>steps; [[ $n == ${turn + 1} && $(wc -l <steps) == ${turn + 1} && $(tail -1 steps) == ${turn} ]] && echo ok || echo BAD`,
  });

test(`${rollouts} rollouts of ${turns} turns end whole while ${kills} workers are killed, and go on after turns that were saved`, {
  skip,
  timeout: 480_000,
}, async (context) => {
  let sampled = 0;
  const policy: Policy = ({ turn }) => {
    sampled += 1;
    return { text: turn < turns ? step(turn) : renderCall('finish', {}) };
  };
  await using backend = await openFakeBackend({ policy, latencyMs: 600 });
  const pipeline = { leaseMs: 2000, maxLosses: 100, retryDelayMs: 0 };
  await using service = await TestService.open({ workers: 2, tokenizer: qwen3Folder(), pipeline });
  const { client } = service;
  await client.backends.join({ url: backend.url, dialect: 'vllm' });
  const check = `test $(wc -l <steps) = ${turns}`;
  const task = { instruction: 'do it', check };
  const accepted = await client.submit(Array.from({ length: rollouts }, (_, index) => ({ id: `c-${index}`, scenario: 'shell', task })));
  const ids = accepted.map(({ id }) => id);
  const views = () => Promise.all(ids.map((id) => client.get(id)));
  /** The process of a worker that has a rollout with this many saved turns. */
  const findBusy = async (least: number): Promise<number | undefined> => {
    for (const { id, worker } of (await views()).filter(({ state }) => state === 'run')) {
      const saved = await client.turns(id);
      const { workers } = await client.status();
      if (saved.length >= least) return workers.find((one) => one.alive && one.id === worker)?.pid;
    }
    return undefined;
  };
  let killed = 0;
  while (killed < kills && !(await views()).every(({ state }) => state === 'done')) {
    await pause(lookMs);
    const pid = await findBusy((killed + 1) * (turns / (kills + 1)));
    if (pid === undefined) continue;
    process.kill(pid, 'SIGKILL');
    killed += 1;
  }
  for (const id of ids) {
    const view = await client.wait(id);
    assert.deepEqual([view.state, view.reward, view.result?.turns], ['done', 1, turns + 1], JSON.stringify(view.failure));
    const trajectory = await client.trajectory(id);
    assert.deepEqual(findWrongToken(trajectory), []);
    const { segments } = trajectory;
    assert.ok(!segments.some(({ kind, text }) => kind === 'observation' && text.includes('BAD')), id);
    const said = segments.filter(({ kind }) => kind === 'sampled').map(({ text }) => text.replace('<|im_end|>', ''));
    assert.deepEqual(said, [...Array.from({ length: turns }, (_, turn) => step(turn)), renderCall('finish', {})]);
  }
  const ended = await views();
  const needed = rollouts * (turns + 1);
  const times = ended.reduce((sum, { result }) => sum + (result?.continued?.times ?? 0), 0);
  const losses = ended.reduce((sum, view) => sum + view.losses, 0);
  context.diagnostic(`${killed} kills, ${losses} losses, continued ${times} times; ${sampled} turns sampled for ${needed}`);
  assert.ok(losses > 0, 'the kills hit something');
  assert.ok(times > 0, 'rollouts continued');
});
