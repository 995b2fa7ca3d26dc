// `millrace task check` on the Harbor folders of examples/, as a user would run it: their own solutions pass, an untouched environment fails.

import assert from 'node:assert/strict';
import { cp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeTempFolder } from '@millrace/testkit';
import { z } from 'zod';
import { makeTerminalBench, taskNames } from '../../examples/terminal-bench/make.ts';
import { millrace, openIo } from '../../packages/cli/test/fake-io.ts';
import { worldCacheFolder } from '../engines/world-cache.ts';
import { makeGitImage } from './python-image.ts';

const examples = join(import.meta.dirname, '../../examples/harbor');
const report = z.object({
  total: z.number(),
  counts: z.record(z.string(), z.number()),
  tasks: z.array(z.object({ task: z.string(), outcome: z.string(), why: z.string().optional() })),
});

test('tasks of Terminal-Bench from PyPI run as they are: task check finds them right', { timeout: 600_000 }, async (context) => {
  const folder = await makeTerminalBench(join(worldCacheFolder(), 'terminal-bench-1'));
  const tasks = join(folder, 'tasks');
  await rm(`${tasks}.checked.jsonl`, { force: true });
  const { code, out } = await millrace(['task', 'check', tasks, '--json', '--config', join(folder, 'millrace.json')], openIo());
  const { total, counts, tasks: checked } = report.parse(JSON.parse(out));
  context.diagnostic(`${counts.right ?? 0} of ${total} tasks are right`);
  assert.deepEqual([code, total, counts.right], [0, taskNames.length, taskNames.length], JSON.stringify(checked));
});

test('task check finds every Harbor folder of the examples right, and says why a broken one is not', { timeout: 600_000 }, async () => {
  await using folder = await makeTempFolder('hb');
  const image = join(folder.path, 'image');
  await makeGitImage(image);
  const config = join(folder.path, 'millrace.json');
  const sandbox = {
    driver: 'apptainer',
    images: join(folder.path, 'images'),
    imageNames: { 'debian:12-slim': image, 'python:3.12-slim': image },
  };
  await writeFile(config, JSON.stringify({ data: join(folder.path, 'data'), run: join(folder.path, 'run'), sandbox }));
  const tasks = join(folder.path, 'tasks');
  await cp(examples, tasks, { recursive: true });
  const check = async () => {
    const { code, out } = await millrace(['task', 'check', tasks, '--json', '--config', config], openIo());
    return { code, ...report.parse(JSON.parse(out)) };
  };
  const first = await check();
  assert.deepEqual([first.code, first.total, first.counts.right], [0, 4, 4], JSON.stringify(first.tasks));
  await cp(join(tasks, 'greeting'), join(tasks, 'broken'), { recursive: true });
  await writeFile(join(tasks, 'broken/solution/solve.sh'), '#!/bin/bash\ntrue\n');
  const second = await check();
  const wrong = second.tasks.filter(({ outcome }) => outcome !== 'right');
  assert.notEqual(second.code, 0);
  assert.equal(wrong.length, 1, JSON.stringify(second.tasks));
  assert.match(wrong[0]?.why ?? '', /the reward is 0/);
});
