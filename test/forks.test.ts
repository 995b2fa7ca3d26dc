// Forks of a rollout through the API: they share its tokens up to a turn and its sandbox as it was then, and nothing with each other.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type RolloutError, type Trajectory, trainableShare } from '@millrace/protocol';
import { probeBubblewrap } from '@millrace/sandbox';
import { findWrongToken, openFakeBackend, type Policy, qwen3Folder, renderCall, TestService } from '@millrace/testkit';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;

const turns = 6;
const at = 4;
const forks = 3;
const lookMs = 50;

/** From the turn after the fork on, each rollout writes what no other one may see. */
const step = (turn: number, isSlow: boolean) =>
  renderCall('bash', {
    command: `${isSlow ? 'sleep 1; ' : ''}((n += 1)); echo ${turn} >>steps; [[ $n == ${turn + 1} && $(wc -l <steps) == ${turn + 1} ]] && echo ok || echo BAD
${turn >= at ? 'touch /tmp/own-$RANDOM-$RANDOM; echo alone-$(ls /tmp/own-* | wc -l)' : 'true'}`,
  });

const idsOf = ({ segments }: Trajectory, before: number) =>
  segments.filter(({ turn }) => turn <= before).flatMap(({ tokenIds }) => [...tokenIds]);

async function runCli(args: readonly string[], input = ''): Promise<{ code: number | null; out: string; err: string }> {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.resolve('millrace/main')), ...args], { stdio: 'pipe' });
  child.stdin.end(input);
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, out, err };
}

const isConflict = (error: RolloutError) => error.code === 'conflict' && /kept turns: 2, 4/.test(error.message);

test('forks share tokens and sandbox up to their turn, and nothing else', { skip, timeout: 240_000 }, async () => {
  let sampled = 0;
  const temperatures: unknown[] = [];
  const policy: Policy = ({ turn, opening }) => {
    sampled += 1;
    return { text: turn < turns ? step(turn, opening().includes('slowly')) : renderCall('finish', {}) };
  };
  await using backend = await openFakeBackend({ policy });
  await using service = await TestService.open({ workers: 1, tokenizer: qwen3Folder() });
  const { client } = service;
  await client.backends.join({ url: backend.url, dialect: 'vllm' });
  const task = { instruction: 'do it', check: `test $(wc -l <steps) = ${turns}` };
  await client.submit([
    { id: 'root', scenario: 'shell', task, keep_checkpoints: { every: 2 }, sampling: { temperature: 0.5 } },
    { id: 'plain', scenario: 'shell', task },
  ]);
  const root = await client.wait('root');
  assert.deepEqual([root.state, root.reward], ['done', 1], JSON.stringify(root.failure));
  await client.wait('plain');
  assert.deepEqual(await client.turns('plain'), []);
  assert.deepEqual(
    (await client.turns('root')).filter(({ kept }) => kept).map(({ turn }) => turn),
    [2, 4, 6],
  );
  await assert.rejects(client.fork('plain'), { code: 'conflict' });
  await assert.rejects(client.fork('root', { turn: 3 }), isConflict);

  const before = sampled;
  const asked = { id: 'child', turn: at, n: forks, sampling: { temperature: 1.25 } };
  const { rollouts, turn } = await client.fork('root', asked);
  assert.deepEqual([turn, rollouts.map(({ id }) => id)], [at, ['child.1', 'child.2', 'child.3']]);
  assert.ok(
    (await client.fork('root', asked)).rollouts.every(({ created }) => !created),
    'a repeated request changes nothing',
  );
  const shared = idsOf(await client.trajectory('root'), at);
  for (const { id } of rollouts) {
    const view = await client.wait(id);
    assert.deepEqual([view.state, view.reward, view.result?.turns], ['done', 1, turns + 1], JSON.stringify(view.failure));
    assert.deepEqual([view.fork, view.group], [{ rollout: 'root', turn: at }, 'root']);
    const trajectory = await client.trajectory(id);
    assert.deepEqual(idsOf(trajectory, at), shared);
    assert.deepEqual(findWrongToken(trajectory), []);
    const own = trajectory.segments.filter(({ kind }) => kind === 'sampled');
    assert.deepEqual(
      own.map((one) => one.turn),
      [5, 6, 7],
      'the shared prefix is trained once, in the rollout that was forked',
    );
    assert.ok(trainableShare(trajectory) < trainableShare(await client.trajectory('root')));
    temperatures.push(...(trajectory.provenances ?? []).map((one) => one.sampling.temperature));
    const said = trajectory.segments.filter((one) => one.kind === 'observation' && one.turn > at).map(({ text }) => text);
    assert.ok(said.every((text) => /ok/.test(text) && !/BAD/.test(text)));
    assert.ok(said.some((text) => text.includes('alone-1')) && !said.some((text) => text.includes('alone-3')), said.join());
  }
  assert.equal(sampled - before, forks * 3);
  assert.deepEqual(new Set(temperatures), new Set([1.25]));
  await client.submit([{ id: 'live', scenario: 'shell', task: { ...task, instruction: 'do it slowly' }, keep_checkpoints: { every: 2 } }]);
  while (!(await client.turns('live')).some(({ kept }) => kept)) await pause(lookMs);
  const early = await client.fork('live', { id: 'early', turn: 2 });
  assert.equal((await client.get('live')).state, 'run', 'it is forked while it runs');
  const [live, fork] = [await client.wait('live'), await client.wait(early.rollouts[0]?.id ?? '')];
  assert.deepEqual([live.reward, fork.reward, fork.fork], [1, 1, { rollout: 'live', turn: 2 }], JSON.stringify(fork.failure));
  assert.deepEqual(idsOf(await client.trajectory('early.1'), 2), idsOf(await client.trajectory('live'), 2));

  const config = ['--config', join(service.folder, 'millrace.json'), '--url', service.url];
  const opened = await runCli(['open', 'root', '--turn', '5', ...config], 'cat steps; echo n=$n; echo more >>steps\nwc -l <steps\n');
  assert.deepEqual([opened.code, opened.out], [0, '0\n1\n2\n3\nn=4\n5\n'], opened.err);
  const replayed = await runCli(['replay', 'root', '--from', '2', '--url', service.url]);
  assert.match(replayed.out, /^r-\S+\.1 {2}done {2}reward 1 {2}7 turns\n$/, replayed.err);
  assert.equal((await runCli(['open', 'plain', ...config])).code, 1);
  assert.equal((await readdir(join(service.runDir, 'checkpoints'))).length, 4 + forks, 'forks keep theirs as well; `plain` left nothing');
});
