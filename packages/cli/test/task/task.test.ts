// `millrace task`: rows as tasks, from JSON lines and Parquet, and tasks that are checked in real sandboxes.

import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { probeBubblewrap } from '@millrace/sandbox';
import type { TaskTrial } from '@millrace/scenarios';
import { makeTempFolder } from '@millrace/testkit/plain';
import { findFlaky } from '../../src/task/check-tasks.ts';
import { millrace, openIo } from '../fake-io.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;

const row = {
  repo: 'getmoto/moto',
  instance_id: 'getmoto__moto-1',
  base_commit: 'abc',
  patch: 'p',
  test_patch: 'diff --git a/tests/test_q.py b/tests/test_q.py\n',
  problem_statement: 'It is wrong.',
  FAIL_TO_PASS: '["t"]',
  PASS_TO_PASS: '[]',
};

const run = (...argv: string[]) => millrace(['task', ...argv], openIo());

test('rows become tasks, and a row that cannot be used is named', async () => {
  await using folder = await makeTempFolder('tk');
  const path = join(folder.path, 'rows.jsonl');
  await writeFile(path, `${JSON.stringify(row)}\n${JSON.stringify({ ...row, FAIL_TO_PASS: '[' })}\n`);
  const refused = await run('import', 'swe-gym', path);
  assert.deepEqual([refused.code, refused.out], [1, '']);
  assert.match(refused.err, /row 2: FAIL_TO_PASS is not JSON/);
  const out = join(folder.path, 'tasks.jsonl');
  assert.equal((await run('import', 'swe-gym', path, '--skip-bad', '--out', out)).code, 0);
  const [first = ''] = (await readFile(out, 'utf8')).split('\n');
  assert.match(first, /"scenario":"swe".*xingyaoww\/sweb.eval.x86_64.getmoto_s_moto-1/);
  assert.match((await run('show', out)).out, /instance_id: getmoto__moto-1\n/);
  assert.match((await run('import', 'swe-martian', path)).err, /there is no kind of rows swe-martian: use swe-bench, swe-gym/);
});

test('Parquet is read like JSON lines', async () => {
  const path = join(import.meta.dirname, 'rows.parquet');
  const { code, out } = await run('import', 'auto', path);
  assert.equal(code, 0);
  const tasks = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).task);
  assert.deepEqual(
    tasks.map(({ instance_id: id, FAIL_TO_PASS: names }) => [id, names]),
    [
      ['getmoto__moto-1', ['t']],
      ['getmoto__moto-2', ['t', 'ü']],
    ],
  );
});

const setup = `git init -q /workspace/repo; cd /workspace/repo; printf 'x = 1\\n' > m.py
printf 'import unittest, m, os\\nclass T(unittest.TestCase):\\n    def test_x(self): self.assertEqual(m.x, 2)\\n' > test_m.py
git -c user.name=a -c user.email=a@b add -A; git -c user.name=a -c user.email=a@b commit -qm first`;
const patch = 'diff --git a/m.py b/m.py\n--- a/m.py\n+++ b/m.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n';
const task = {
  instance_id: 'good',
  repo: 'a/b',
  problem_statement: 'x should be 2',
  workdir: '/workspace/repo',
  setup,
  test_command: 'python3 -m unittest -v',
  log_parser: 'unittest',
  FAIL_TO_PASS: ['test_x (test_m.T.test_x)'],
  patch,
};

test('task check finds solutions that fail and tests that pass without one, and continues where it stopped', {
  skip,
  timeout: 200_000,
}, async () => {
  await using folder = await makeTempFolder('tk');
  const path = join(folder.path, 'tasks.jsonl');
  const tasks = [
    task,
    { ...task, instance_id: 'wrong', patch: patch.replace('+x = 2', '+x = 3') },
    {
      ...task,
      instance_id: 'easy',
      setup: setup.replace('x = 1', 'x = 2'),
      patch: patch.replace('-x = 1', '-x = 2').replace('+x = 2', '+x = 2 '),
    },
    { ...task, instance_id: 'broken', test_command: 'true' },
  ];
  await writeFile(path, tasks.map((one) => `${JSON.stringify(one)}\n`).join(''));
  const { code, out } = await run('check', path, '--json', '--out', join(folder.path, 'good.jsonl'));
  const { tasks: checked } = JSON.parse(out) as { tasks: { task: string; outcome: string }[] };
  assert.equal(code, 1);
  assert.deepEqual(
    checked.map(({ task, outcome }) => [task, outcome]),
    [
      ['good', 'right'],
      ['wrong', 'gold_fails'],
      ['easy', 'empty_passes'],
      ['broken', 'broken'],
    ],
  );
  const good = (await readFile(join(folder.path, 'good.jsonl'), 'utf8')).trim().split('\n');
  assert.deepEqual([good.length, JSON.parse(good[0] ?? '').task.instance_id], [1, 'good']);
  const again = await run('check', path);
  assert.match(again.out, /good +right[\s\S]*1 of 4 tasks are right/);
});

const environment = `class Echo:
    def reset(self, seed=None):
        return "Say yes.", {}
    def step(self, action):
        return "", 1 / 3 if action == "yes" else 0.0, False, False, {}
`;
const doubling = { question: 'Double it.', tests: [{ input: '4', output: '8' }] };

test('task check judges tasks of math, stem, code and gym by their own solutions', { skip, timeout: 200_000 }, async () => {
  await using folder = await makeTempFolder('tk');
  const [path, config, packages] = ['tasks.jsonl', 'millrace.json', 'packages'].map((name) => join(folder.path, name)) as [
    string,
    string,
    string,
  ];
  await mkdir(packages);
  await writeFile(join(packages, 'echo_env.py'), environment);
  await writeFile(config, JSON.stringify({ gym: { packages } }));
  const echo = { kind: 'gymnasium', env: 'echo_env:Echo' };
  const choice = { kind: 'choice', question: 'Which?', options: ['one', 'two'], answer: 'B' };
  const cases: readonly (readonly [string, Record<string, unknown>, string, RegExp?])[] = [
    ['math', { question: '1/2?', answer: ['0.5', '\\frac12'], solution: 'It is \\boxed{\\textbf{1/2}}.' }, 'right'],
    [
      'math',
      { question: '1/2?', answer: '0.5', solution: 'It is \\boxed{2}.' },
      'gold_fails',
      /the solution is read as 2, and 0\.5 is expected/,
    ],
    ['math', { question: '1/2?', answer: '\\frac{1}{2' }, 'broken', /cannot be read back from a box: check its braces/],
    ['stem', { ...choice, solution: 'One solution is two. The answer is (B).' }, 'right'],
    ['stem', { ...choice, solution: 'The answer is (A).' }, 'gold_fails', /is read as A/],
    ['code', { ...doubling, solution: 'print(int(input()) * 2)' }, 'right'],
    ['code', { ...doubling, solution: 'print(input())' }, 'gold_fails', /test 1 of the solution: wrong_output/],
    ['code', doubling, 'gold_fails', /the task has no `solution`/],
    ['gym', { ...echo, solution: ['yes', 'yes', 'yes'] }, 'right'],
    ['gym', { ...echo, solution: ['yes', 'no'] }, 'gold_fails', /after 2 of 2 turns the reward is 0\.333333333333; 1 is the highest/],
  ];
  await writeFile(path, cases.map(([scenario, task], at) => `${JSON.stringify({ id: `${at}`, scenario, task })}\n`).join(''));
  const { out } = await run('check', path, '--json', '--config', config);
  const { tasks: checked } = JSON.parse(out) as { tasks: { outcome: string; why?: string }[] };
  for (const [at, [scenario, , outcome, why]] of cases.entries()) {
    assert.equal(checked[at]?.outcome, outcome, `${scenario} ${at}: ${checked[at]?.why}`);
    if (why) assert.match(checked[at]?.why ?? '', why);
  }
});

test('a test that differs between runs is flaky', () => {
  const runs: TaskTrial[] = [
    { isRight: true, tests: { a: true, b: true } },
    { isRight: false, tests: { a: true, b: false } },
  ];
  assert.deepEqual(findFlaky(runs), ['b']);
});
