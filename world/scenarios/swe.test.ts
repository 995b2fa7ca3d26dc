// Real bugs of real projects from PyPI, in Apptainer: the solution of every task passes, no solution fails, `millrace task check` says so, and
// an agent that repairs a bug through the whole service gets its reward.

import assert from 'node:assert/strict';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { openFakeBackend, openFakeTokens, qwen3Folder, renderCall, scriptedPolicy, TestService } from '@millrace/testkit';
import { z } from 'zod';
import { makeSweExample } from '../../examples/swe/make.ts';
import { millrace, openIo } from '../../packages/cli/test/fake-io.ts';
import { worldCacheFolder } from '../engines/world-cache.ts';

const line = z.object({ task: z.looseObject({ instance_id: z.string(), patch: z.string() }) });
const report = z.object({
  total: z.number(),
  counts: z.record(z.string(), z.number()),
  tasks: z.array(z.object({ task: z.string(), outcome: z.string(), why: z.string().optional() })),
});
const folder = join(worldCacheFolder(), 'swe-example');

test('at least ten bugs of real projects: gold passes, empty fails, and task check says so', { timeout: 1_200_000 }, async (context) => {
  const tasks = await makeSweExample(folder);
  await rm(`${tasks}.checked.jsonl`, { force: true });
  const config = join(import.meta.dirname, '../../examples/swe/apptainer.json');
  const { code, out } = await millrace(['task', 'check', tasks, '--json', '--config', config], openIo());
  const { total, counts, tasks: checked } = report.parse(JSON.parse(out));
  context.diagnostic(`${counts.right ?? 0} of ${total} tasks are right`);
  assert.deepEqual(
    checked.filter(({ outcome }) => outcome !== 'right'),
    [],
  );
  assert.ok(total >= 10 && code === 0);
});

test('an agent that repairs the bug has reward 1 through the service, and one that repairs nothing 0', { timeout: 600_000 }, async () => {
  const lines = (await readFile(await makeSweExample(folder), 'utf8')).trim().split('\n').slice(0, 3);
  const tasks = lines.map((one) => line.parse(JSON.parse(one)).task);
  const policy = scriptedPolicy([
    ...tasks.map(({ instance_id: id, patch }) => ({
      match: new RegExp(`solve ${id}`),
      turns: [renderCall('bash', { command: `git apply - <<'END'\n${patch}END` }), renderCall('finish', {})],
    })),
    { match: /nothing/, turns: [renderCall('bash', { command: 'echo "# nothing" >> setup.py' }), renderCall('finish', {})] },
  ]);
  await using backend = await openFakeBackend({ policy, tokens: await openFakeTokens() });
  await using service = await TestService.open({ workers: 1, tokenizer: qwen3Folder(), sandbox: { driver: 'apptainer' } });
  const { client } = service;
  await client.backends.join({ url: backend.url });
  const submissions = tasks.flatMap((task, at) => [
    { id: `gold-${at}`, scenario: 'swe', task: { ...task, problem_statement: `solve ${task.instance_id}` } },
    { id: `none-${at}`, scenario: 'swe', task: { ...task, problem_statement: 'nothing' } },
  ]);
  await client.submit(submissions);
  const views = await Array.fromAsync(client.results(submissions.map(({ id }) => id)));
  for (const { id, state, reward, failure } of views)
    assert.deepEqual([id, state, reward, failure], [id, 'done', id.startsWith('gold') ? 1 : 0, null]);
  assert.equal(views.length, 6);
});
