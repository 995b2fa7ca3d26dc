// The Python client against a whole service with real sandboxes: what it reads is what the TypeScript client reads, bit for bit; and
// the README's example, as it stands there, runs.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { toBinary } from '@millrace/protocol';
import { probeBubblewrap } from '@millrace/server';
import { findWrongToken, openFakeBackend, openFakeTokens, qwen3Folder, renderCall, scriptedPolicy, TestService } from '@millrace/testkit';
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
  policy: z.array(z.union([z.string(), z.int()])),
  cancelled: z.string(),
  drained: z.string(),
  left: z.int(),
});

describe('the Python client and a real service', { skip: missing ?? false }, () => {
  test('submits, waits, iterates, reads both forms, takes groups, swaps weights and cancels, from threads and from asyncio', async () => {
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
    assert.deepEqual(seen.policy, ['paused', 0, 'running', 4]);
    assert.equal(Object.keys(seen.rollouts).length, 22);
    for (const [id, { reward, trajectory }] of Object.entries(seen.rollouts)) {
      const own = await service.client.trajectory(id);
      assert.deepEqual(findWrongToken(own), [], id);
      assert.equal(trajectory, createHash('sha256').update(toBinary(own)).digest('hex'), id);
      assert.equal(reward, (await service.client.get(id)).reward, id);
    }
  });

  test("the README's example runs as it stands", async () => {
    await using backend = await openFakeBackend({ policy, tokens: await openFakeTokens() });
    await using service = await TestService.open({ workers: 1, tokenizer });
    await service.client.backends.join({ url: backend.url });
    const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');
    const [, example = ''] = /```python\n([\s\S]*?)```/.exec(readme) ?? [];
    const { code, output } = await runPython(['-W', 'error', '-c', example], { env: { MILLRACE_URL: service.url } });
    assert.equal(code, 0, output);
    const lines = output.trim().split('\n');
    assert.equal(lines.length, 4);
    for (const line of lines) assert.match(line, /^1\.0 (\d+) \1 0\.0$/);
  });
});
