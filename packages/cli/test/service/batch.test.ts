// `millrace batch` against the real server. Nothing runs, so a batch ends only when it is cancelled.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { batchView } from '@millrace/protocol';
import { makeTempFolder } from '@millrace/testkit/plain';
import { renderBatch, renderBatchLine } from '../../src/service/batch-render.ts';
import { openPaint, width } from '../../src/terminal/text.ts';
import { openRealService } from '../real-service.ts';

const tasks = [1, 2, 3].map((n) => JSON.stringify({ question: `${n} + ${n}?`, answer: String(2 * n) })).join('\n');
const start = ['batch', 'start', '--scenario', 'math', '--target', '2', '--siblings', '4'];

test('a batch is started from a file, listed, shown and cancelled', async () => {
  await using service = await openRealService();
  await using folder = await makeTempFolder('batch');
  const file = join(folder.path, 'tasks.jsonl');
  await writeFile(file, tasks);
  const started = await service.run([...start, file, '--name', 'step-1', '--max-tokens', '64', '--set', 'max_groups=3']);
  assert.deepEqual([started.code, started.out], [0, 'step-1\n'], started.err);
  assert.match((await service.run(['batch', 'ls'])).out, /^step-1 +open +0\/2 +·+ +- +- +\d +math +-$/m);
  assert.match((await service.run(['batch', 'show', 'step-1'])).out, /^ {2}scenario +math, 4 siblings\n {2}tasks +\d begun, 3 given$/m);
  const refused = await service.run(['batch', 'cancel', 'step-1'], { stdin: '' });
  assert.deepEqual([refused.code, /Add --yes/.test(refused.err)], [2, true]);
  assert.match((await service.run(['batch', 'cancel', 'step-1', '--yes'])).out, /^step-1 is cancelled; 0 groups were delivered\n$/);
  const followed = await service.run(['batch', 'groups', 'step-1']);
  assert.deepEqual([followed.code, followed.out, followed.err], [1, '', 'batch step-1 is over: cancelled, 0 of 2 groups\n']);
  assert.equal((await service.run(['batch', 'watch', 'step-1'])).code, 1);
});

test('the newest batch is listed first, and only those that were asked for', async () => {
  await using service = await openRealService();
  for (const name of ['a', 'b', 'c']) await service.run([...start, '--name', name], { stdin: tasks });
  await service.run(['batch', 'cancel', 'b', '--yes']);
  const ids = async (...more: string[]) =>
    JSON.parse((await service.run(['batch', 'ls', '--json', ...more])).out).map((one: { id: string }) => one.id);
  assert.deepEqual(await ids(), ['c', 'b', 'a']);
  assert.deepEqual(await ids('--state', 'open'), ['c', 'a']);
  assert.deepEqual(await ids('--limit', '1'), ['c']);
});

test('the start of an id is enough for every command that takes a batch', async () => {
  await using service = await openRealService();
  for (const name of ['step-1', 'step-21', 'step-22']) await service.run([...start, '--name', name], { stdin: tasks });
  assert.equal(JSON.parse((await service.run(['batch', 'show', 'step-1', '--json'])).out).id, 'step-1');
  assert.match((await service.run(['batch', 'resume', 'step-21'])).out, /^step-21 is open/);
  const several = await service.run(['batch', 'cancel', 'step-2', '--yes']);
  assert.deepEqual([several.code, several.out], [2, '']);
  assert.match(several.err, /step-2 is the start of several batches: step-21, step-22\n/);
  assert.equal((await service.run(['cancel', '--batch', 'step-22', '--yes'])).out, 'batch step-22 is cancelled\n');
  assert.match(
    (await service.run(['batch', 'cancel', 'step-1', 'step-21', '--yes'])).out,
    /^step-1 is cancelled; .*\nstep-21 is cancelled/,
  );
  for (const action of ['show', 'watch', 'groups', 'resume', 'cancel']) {
    const { code, err } = await service.run(['batch', action, 'nope', ...(action === 'cancel' ? ['--yes'] : [])]);
    assert.equal(code, 1);
    assert.match(err, /no batch is called nope or begins with it on this service; to list them: millrace batch ls\n/);
  }
  assert.match((await service.run(['batch', 'watch', 'step-22'])).out, /step-22/);
});

test('a task that the service refuses is named by its line', async () => {
  await using service = await openRealService();
  const { code, err } = await service.run(start, { stdin: `\n${tasks}\n\n{"question":"only"}\n` });
  assert.equal(code, 2);
  assert.match(err, /^millrace: stdin:6: answer: is missing\n/);
});

test('what a batch lacks is a usage error', async () => {
  await using service = await openRealService();
  for (const [argv, stdin, wanted] of [
    [['batch', 'start'], tasks, /--target N and --siblings N/],
    [start.slice(0, 2).concat(start.slice(4)), '{"a":1}', /scenario: .*\(or use --scenario\)/],
    [start, '{"scenario":"math","task":{}}\n{"scenario":"shell","task":{}}', /one scenario, but stdin has math and shell/],
    [start, '\n', /stdin has no tasks/],
    [[...start, '--set', 'max_group=3'], tasks, /max_group/],
    [[...start, '--set', 'nonsense'], tasks, /--set nonsense is not key=value, such as n=4/],
  ] as const) {
    const { code, err } = await service.run(argv, { stdin });
    assert.equal(code, 2, `${argv.join(' ')}: ${err}`);
    assert.match(err, wanted);
  }
});

test('the progress line of a batch fits every width', () => {
  const waste = { rollouts: 0, tokens: 0, seconds: 0 };
  const batch = batchView.parse({
    id: 'step-1',
    series: null,
    state: 'open',
    scenario: 'math',
    group_size: 8,
    target: 32,
    groups: { open: 20, delivered: 12, uniform: 9, failed: 1, surplus: 0, stale: 0 },
    carried: 2,
    tasks: { given: 100, begun: 42, closed: true },
    informative_share: 0.545,
    mean_reward: 0.43,
    wasted: { uniform: { rollouts: 72, tokens: 9000, seconds: 80 }, failed: waste, surplus: waste, stale: waste },
    created_at: '2026-01-01T00:00:00Z',
    ended_at: '2026-01-01T00:01:00Z',
    metadata: null,
  });
  const paint = openPaint(false);
  for (let columns = 12; columns < 140; columns++) assert.ok(width(renderBatchLine(batch, { columns, paint })) < columns, `at ${columns}`);
  assert.match(
    renderBatchLine(batch, { columns: 80, paint }),
    /^▕█+[▉-▏]?·+▏ 12\/32 groups {2}reward 0\.430 {2}55% informative {2}20 open$/,
  );
  const page = renderBatch(batch, paint).join('\n');
  assert.match(page, /groups {7}20 open, 12 delivered, 9 uniform, 1 failed \(2 from an earlier batch\)/);
  assert.match(page, /uniform {6}72 rollouts, 9,000 tokens sampled and not delivered/);
});
