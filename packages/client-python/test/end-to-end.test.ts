// The Python client against a whole service with real sandboxes: it reads what the TypeScript client reads, bit for bit, and the
// programs in its README run.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { toBinary } from '@millrace/protocol';
import { probeBubblewrap } from '@millrace/sandbox';
import {
  findWrongToken,
  openFakeBackend,
  openFakeTokens,
  type Policy,
  qwen3Folder,
  renderCall,
  scriptedPolicy,
  TestService,
} from '@millrace/testkit';
import { z } from 'zod';
import { python, runPython } from './run-python.ts';

const probe = await probeBubblewrap();
const missing = python.ok ? (probe.ok ? undefined : `${probe.reason}; try: ${probe.remedy}`) : python.reason;
const tokenizer = qwen3Folder();

const policy = scriptedPolicy([
  { match: /1 \+ 1/, turns: ['It is \\boxed{2}.'] },
  { match: /two turns/, turns: [renderCall('bash', { command: 'echo "ä ☃"' }), renderCall('finish', {})] },
  { match: /wait for long/, turns: [renderCall('bash', { command: 'sleep 60' })] },
]);

const printed = z.object({
  rollouts: z.record(z.string(), z.object({ reward: z.number(), trajectory: z.string() })),
  batches: z.object({ rewards: z.array(z.array(z.number())) }),
  evaluations: z.object({ mean: z.number(), pass_at: z.array(z.array(z.number())), rewards: z.array(z.array(z.number())) }),
  policy: z.array(z.union([z.string(), z.int()])),
  cancelled: z.string(),
  drained: z.string(),
  left: z.int(),
});

describe('the Python client and a real service', { skip: missing ?? false }, () => {
  test('submits, waits, iterates, reads both forms, takes groups, evaluates, swaps weights and cancels, from threads and from asyncio', async () => {
    await using backend = await openFakeBackend({ policy, tokens: await openFakeTokens(), latencyMs: 5 });
    await using service = await TestService.open({ workers: 2, tokenizer });
    const { code, output } = await runPython(['-W', 'error', 'programs/end_to_end.py', backend.url], {
      env: { MILLRACE_URL: service.url },
    });
    assert.equal(code, 0, output);
    const seen = printed.parse(JSON.parse(output));
    assert.deepEqual([seen.cancelled, seen.drained, seen.left], ['cancelled', 'draining', 0]);
    assert.deepEqual(seen.batches.rewards, [
      [1, 1],
      [1, 1],
    ]);
    assert.deepEqual(seen.evaluations, {
      mean: 0.75,
      pass_at: [
        [1, 0.75],
        [2, 0.75],
      ],
      rewards: [
        [1, 1],
        [1, 1],
        [1, 1],
        [0, 0],
      ],
    });
    assert.deepEqual(seen.policy, ['paused', 0, 'running', 4]);
    assert.equal(Object.keys(seen.rollouts).length, 22);
    for (const [id, { reward, trajectory }] of Object.entries(seen.rollouts)) {
      const own = await service.client.trajectory(id);
      assert.deepEqual(findWrongToken(own), [], id);
      assert.equal(trajectory, createHash('sha256').update(toBinary(own)).digest('hex'), id);
      assert.equal(reward, (await service.client.get(id)).reward, id);
    }
  });

  test('every Python program in the README runs', async () => {
    await using backend = await openFakeBackend({ policy: alternate(), tokens: await openFakeTokens() });
    await using service = await TestService.open({ workers: 1, tokenizer });
    await service.client.backends.join({ url: backend.url });
    const run = async (example: string | undefined) => {
      const { code, output } = await runPython(['-W', 'error', '-c', example ?? ''], { env: { MILLRACE_URL: service.url } });
      assert.equal(code, 0, output);
      return output.trim().split('\n');
    };
    const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');
    const [loop, single, post, evaluate, resume, ...others] = [...readme.matchAll(/```python\n([\s\S]*?)```/g)].map(
      ([, example]) => example,
    );
    assert.deepEqual(others, []);

    const rows = (await run(loop)).map((line) => line.split(' '));
    assert.deepEqual(
      rows.map(([step]) => step),
      [...Array(8).fill('0'), ...Array(8).fill('1')],
    );
    for (const [, reward, advantage, ids, mask] of rows) {
      assert.equal(Number(advantage), reward === '1.0' ? 1 : -1);
      assert.ok(Number(ids) > 0 && ids === mask);
    }
    const { state, policy_version } = await service.client.policy.get();
    assert.deepEqual([state, policy_version], ['running', 2]);

    for (const line of await run(single)) assert.match(line, /^[01]\.0 (\d+) \1$/);

    assert.match((await run(post)).join('\n'), /^\(LogprobMismatch\(.*tokens=[1-9]\d*, mean_abs=0\.0, .*\),\) None$/);

    const measured = [`0.5 0.0 0 {1: 0.5, 2: ${1 - 1 / 6}, 4: 1.0}`];
    assert.deepEqual(await run(evaluate), measured);
    assert.deepEqual(await run(evaluate), measured, 'the second run reads what the first measured');

    assert.match((await run(resume)).join('\n'), /^1 \(.*\)\n2 \(.*\)\ndone$/);
    assert.deepEqual(await run(resume), ['done'], 'the second run creates nothing and receives no group again');
  });
});

/** Solves the sums of the README for every second sibling of a task, so that each group is informative. */
function alternate(): Policy {
  const siblings = new Map<string, string[]>();
  return ({ opening, sessionId = '' }) => {
    const [question = '', number = ''] = /(\d) \+ \d/.exec(opening()) ?? [];
    const known = siblings.get(question) ?? [];
    if (!known.includes(sessionId)) siblings.set(question, [...known, sessionId]);
    const solved = (siblings.get(question) ?? []).indexOf(sessionId) % 2 === 0;
    return { text: `It is \\boxed{${solved ? 2 * Number(number) : 7}}.` };
  };
}
