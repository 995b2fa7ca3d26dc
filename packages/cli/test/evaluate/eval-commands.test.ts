// `millrace eval` against the real server without workers: nothing runs, so an evaluation ends only when it is cancelled.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { evaluationView } from '@millrace/protocol';
import { renderEvaluation, renderEvaluationLine } from '../../src/evaluate/eval-render.ts';
import { openPaint, width } from '../../src/terminal/text.ts';
import { openRealService } from '../real-service.ts';

const tasks = [1, 2, 3].map((n) => JSON.stringify({ question: `${n} + ${n}?`, answer: String(2 * n) })).join('\n');
const run = ['eval', '--scenario', 'math', '--n', '4', '--detach'];

test('an evaluation is started once for its content and once for its name, listed, shown and cancelled', async () => {
  await using service = await openRealService();
  const first = await service.run(run, { stdin: tasks });
  assert.deepEqual([first.code, first.err], [0, '']);
  assert.match(first.out, /^stdin-[0-9a-f]{8}\n$/);
  assert.equal((await service.run(run, { stdin: tasks })).out, first.out, 'the same command finds what it started');
  const named = ['--name', 'step-1', '--correct-at', '0.5', '--set', 'weight=2'];
  for (let repeat = 0; repeat < 2; repeat += 1) assert.equal((await service.run([...run, ...named], { stdin: tasks })).out, 'step-1\n');
  const conflict = await service.run([...run, '--name', 'step-1'], { stdin: tasks });
  assert.deepEqual([conflict.code, /step-1 exists with different content/.test(conflict.err)], [1, true]);

  while ((await service.client.evaluations.get('step-1')).samples.begun < 12) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.match((await service.run(['eval', 'ls'])).out, /^step-1 +open +0\/12 +- +- +- @4 +0 +math$/m);
  const refused = await service.run(['eval', 'cancel', 'step-1'], { stdin: '' });
  assert.deepEqual([refused.code, /Add --yes/.test(refused.err)], [2, true]);
  const cancelled = await service.run(['eval', 'cancel', 'step-1', '--yes']);
  assert.equal(cancelled.out, 'step-1 is cancelled; 0 of 12 samples were scored\n');
  const retried = await service.run(['eval', 'retry', 'step-1']);
  assert.deepEqual([retried.code, /step-1 was cancelled: it cannot be retried/.test(retried.err)], [1, true]);
  const shown = await service.run(['eval', 'watch', 'step-1']);
  assert.equal(shown.code, 1, 'an evaluation without a number has failed');
  assert.match(shown.out, /state +cancelled after .*\n.*3 of math, 4 samples each\n/);
  assert.match(shown.out, /failures +12 caller \(cancelled\)/);
  const open = JSON.parse((await service.run(['eval', 'ls', '--state', 'open', '--json'])).out);
  assert.deepEqual([open.length, open[0].metadata.file], [1, 'stdin']);
});

test('the start of an id is enough for every command that takes an evaluation', async () => {
  await using service = await openRealService();
  for (const name of ['step-100', 'step-200']) await service.run([...run, '--name', name], { stdin: tasks });
  assert.equal(JSON.parse((await service.run(['eval', 'show', 'step-2', '--json'])).out).id, 'step-200');
  assert.match((await service.run(['eval', 'cancel', 'step-1', '--yes'])).out, /^step-100 is cancelled; /);
  assert.match(
    (await service.run(['eval', 'cancel', 'step', '--yes'])).err,
    /step is the start of several evaluations: step-100, step-200\n/,
  );
  for (const action of ['show', 'watch', 'retry', 'cancel']) {
    const { code, err } = await service.run(['eval', action, 'nope', ...(action === 'cancel' ? ['--yes'] : [])]);
    assert.equal(code, 1);
    assert.match(err, /no evaluation is called nope or begins with it on this service; to list them: millrace eval ls\n/);
  }
});

test('what is wrong on the command line or in a task is named', async () => {
  await using service = await openRealService();
  for (const [argv, stdin, code, wanted] of [
    [['eval'], '{"a":1}', 2, /scenario: .*\(or use --scenario\)/],
    [
      run,
      '{"scenario":"math","task":{}}\n{"scenario":"shell","task":{}}',
      2,
      /an evaluation has one scenario, but stdin has math and shell/,
    ],
    [run, '\n', 2, /stdin has no tasks/],
    [[...run, '--set', 'group_size=3'], tasks, 2, /group_size/],
    [['eval', 'tasks-that-are-missing.jsonl'], '', 2, /cannot read tasks-that-are-missing\.jsonl/],
    [run, `${tasks}\n{"question":"only"}`, 2, /^millrace: stdin:4: answer: is missing/],
    [['eval', 'show', 'none'], '', 1, /no evaluation is called none/],
  ] as const) {
    const { code: got, err } = await service.run(argv, { stdin });
    assert.equal(got, code, `${argv.join(' ')}: ${err}`);
    assert.match(err, wanted);
  }
  const greedy = await service.run([...run, '--temperature', '0'], { stdin: tasks });
  assert.match(greedy.err, /^! at temperature 0 the 4 samples of a task are nearly equal/);
});

const evaluation = evaluationView.parse({
  id: 'step-1',
  state: 'done',
  scenario: 'shell',
  tasks: 100,
  n: 4,
  samples: { total: 400, begun: 400, ended: 400, scored: 397, unscored: 3, correct: 250 },
  mean: { value: 0.63, standard_error: 0.041, lower: 0.625275, tasks: 100 },
  pass_at: [1, 2, 4].map((k) => ({ k, value: 0.6 + k / 20, standard_error: 0.04, lower: 0.6, tasks: 99 })),
  pass_all: [1, 2].map((k) => ({ k, value: 0.65 / k, standard_error: 0.04, lower: 0.3, tasks: 99 })),
  failures: [
    { blame: 'policy', code: 'sandbox-killed', samples: 5, scored: 5 },
    { blame: 'backend', code: 'backend-failed', samples: 3, scored: 0 },
  ],
  stop_reasons: { completed: 390, max_turns: 7 },
  turns: 1280,
  sampled_tokens: 496_000,
  policy_versions: { first: 7, last: 9 },
  sampling: {},
  limits: {},
  correct_at: null,
  created_at: '2026-01-01T00:00:00Z',
  ended_at: '2026-01-01T00:02:05Z',
  metadata: null,
});

test('the page of an evaluation shows what was measured, what was not, and who is to blame', () => {
  assert.deepEqual(renderEvaluation(evaluation, openPaint(false)), [
    'evaluation step-1',
    '  state        done after 2m 05s',
    '  tasks        100 of shell, 4 samples each',
    '  sampling     temperature 1, max_tokens 4096, policy versions 7 to 9: the weights changed while it ran',
    '  samples      397 scored, 3 unscored, 250 correct (the highest reward of its task)',
    '',
    '  metric        value   stderr   lower  tasks',
    '  mean reward  0.6300  ±0.0410  0.6253    100',
    '  pass@1       0.6500  ±0.0400  0.6000     99',
    '  pass@2       0.7000  ±0.0400  0.6000     99',
    '  pass@4       0.8000  ±0.0400  0.6000     99',
    '  pass^2       0.3250  ±0.0400  0.3000     99',
    '  lower: the 3 samples without a reward counted as 0 and as not correct',
    '',
    '  failures     5 policy (sandbox-killed, scored with the lowest reward)',
    '               3 backend (backend-failed)',
    '  stopped      completed 390, max_turns 7',
    '  per sample   3.2 turns, 1,240 sampled tokens',
  ]);
});

test('the progress line of an evaluation fits every width', () => {
  const open = { ...evaluation, state: 'open' as const, samples: { ...evaluation.samples, ended: 200 } };
  const paint = openPaint(false);
  for (let columns = 12; columns < 160; columns += 1)
    assert.ok(width(renderEvaluationLine(open, { columns, paint, perSecond: 10 })) < columns, `at ${columns}`);
  assert.match(
    renderEvaluationLine(open, { columns: 120, paint, perSecond: 10 }),
    /^▕█+[▉-▏]?·+▏ 200\/400 samples {2}mean 0\.6300 ±0\.0410 {2}pass@4 0\.8000 {2}3 unscored {2}ETA 20\.0 s$/,
  );
});
