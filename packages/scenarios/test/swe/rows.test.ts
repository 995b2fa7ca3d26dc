// Rows of the data sets for software engineering, each recognised by its fields.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { replacePatch, reversePatch } from '../../src/swe/rows/patch-text.ts';
import { makeSweScenario } from '../../src/swe/swe.ts';
import { sweTask } from '../../src/swe/task/swe-task.ts';

const testPatch =
  'diff --git a/tests/queries/test_q.py b/tests/queries/test_q.py\n--- a/tests/queries/test_q.py\n+++ b/tests/queries/test_q.py\n';
const bench = {
  repo: 'django/django',
  instance_id: 'django__django-11099',
  base_commit: 'd26b2424437dabeeca94d7900b37d2df4410da0c',
  patch: 'diff --git a/x.py b/x.py\n',
  test_patch: testPatch,
  problem_statement: 'It is wrong.',
  hints_text: '',
  created_at: '2019-03-20T03:46:18Z',
  version: '3.0',
  FAIL_TO_PASS: '["test_a (queries.test_q.T)"]',
  PASS_TO_PASS: '[]',
  environment_setup_commit: '419a78300f7cd27611196e1e464d50fd0385ff27',
};

test('a row of SWE-bench is a task, with its image, its command and its log parser', () => {
  const task = sweTask.parse(bench);
  assert.equal(task.image, 'docker://swebench/sweb.eval.x86_64.django_1776_django-11099:latest');
  assert.equal(task.test_command, './tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1 queries.test_q');
  assert.deepEqual([task.log_parser, task.workdir, task.FAIL_TO_PASS], ['django', '/testbed', ['test_a (queries.test_q.T)']]);
  const sympy = sweTask.parse({ ...bench, repo: 'sympy/sympy', instance_id: 'sympy__sympy-1' });
  assert.deepEqual([sympy.log_parser, sympy.test_command.endsWith('--verbose tests/queries/test_q.py')], ['sympy', true]);
});

test("ProRL Agent's clients may send a row or a task of our own: what they add is left out", () => {
  const added = { data_source: 'swegym', trajectory_id: 3, data_kind: 'train', extra_info: { index: 7 } };
  const task = sweTask.parse({ ...bench, image: 'docker://a/b' });
  for (const instance of [bench, task]) {
    const taken = sweTask.parse(makeSweScenario().fromInstance?.({ ...instance, ...added }));
    assert.deepEqual(taken, sweTask.parse(instance));
  }
});

test('rows of SWE-Gym, SWE-rebench, SWE-smith and R2E-Gym are tasks', () => {
  const gym = sweTask.parse({
    ...bench,
    repo: 'getmoto/moto',
    instance_id: 'getmoto__moto-5752',
    FAIL_TO_PASS: ['t'],
    PASS_TO_PASS: ['u'],
  });
  assert.deepEqual(
    [gym.image, gym.test_command],
    ['docker://xingyaoww/sweb.eval.x86_64.getmoto_s_moto-5752:latest', 'pytest -n0 -rA tests/queries/test_q.py'],
  );
  const config = { test_cmd: 'pytest --no-header -rA', log_parser: 'parse_log_pytest', python: '3.9' };
  const rebench = sweTask.parse({
    ...bench,
    repo: 'a/b',
    instance_id: 'a__b-1',
    docker_image: 'swerebench/a_1776_b-1',
    install_config: config,
  });
  assert.deepEqual(
    [rebench.image, rebench.test_command],
    ['docker://swerebench/a_1776_b-1', 'pytest --no-header -rA tests/queries/test_q.py'],
  );
  const bug = replacePatch('a.py', 'x = 1\n', 'x = 2\n');
  const smith = sweTask.parse({
    instance_id: 'o__n.1.x',
    repo: 'swesmith/o__n.1',
    patch: bug,
    image_name: 'swebench/swesmith.x86_64.o',
    problem_statement: 'p',
    FAIL_TO_PASS: ['t.py::a'],
    PASS_TO_PASS: [],
  });
  assert.deepEqual([smith.setup_patch, smith.patch, smith.log_parser], [bug, replacePatch('a.py', 'x = 2\n', 'x = 1\n'), 'pytest_verbose']);
  const content = JSON.stringify({
    file_diffs: [{ header: { file: { path: 'a.py' } }, old_file_content: 'x = 1\n', new_file_content: 'x = 2\n' }],
  });
  const r2e = sweTask.parse({
    docker_image: `namanjain12/aio_final:${'a'.repeat(40)}`,
    repo_name: 'aio',
    problem_statement: 'p',
    expected_output_json: '{"T.a": "PASSED"}',
    parsed_commit_content: content,
  });
  assert.deepEqual([r2e.expected, r2e.patch, r2e.instance_id], [{ 'T.a': 'PASSED' }, bug, `aio__${'a'.repeat(40)}`]);
});

test('rows of Multi-SWE and of NeMo Gym are tasks', () => {
  const multi = sweTask.parse({
    org: 'cli',
    repo: 'cli',
    number: 7,
    base: { sha: 'abc' },
    title: 't',
    resolved_issues: [{ title: 'Bug', body: 'It fails.' }],
    fix_patch: 'f',
    test_patch: testPatch,
    language: 'go',
    f2p_tests: { TestA: {} },
    n2p_tests: { TestB: {} },
    p2p_tests: { TestC: {} },
  });
  assert.deepEqual(
    [multi.image, multi.workdir, multi.log_parser, multi.FAIL_TO_PASS],
    ['docker://mswebench/cli_m_cli:pr-7', '/home/cli', 'gotest', ['TestA', 'TestB']],
  );
  assert.deepEqual([multi.problem_statement, multi.hidden.includes('/home/fix.patch')], ['Bug\n\nIt fails.', true]);
  const nemo = sweTask.parse({
    responses_create_params: {
      input: [],
      metadata: { instance_id: 'x', dataset_name: 'SWE-Gym/SWE-Gym', instance_dict: JSON.stringify({ ...bench, repo: 'a/b' }) },
    },
  });
  assert.match(nemo.image ?? '', /^docker:\/\/xingyaoww\//);
});

test('options next to the fields of a row count, and a bad field is named', () => {
  const task = sweTask.parse({ ...bench, image: '/images/django.sif', test_timeout_s: 60, tools: ['bash', 'submit'] });
  assert.deepEqual([task.image, task.test_timeout_s, task.tools], ['/images/django.sif', 60, ['bash', 'submit']]);
  const wrong = (row: object) => sweTask.safeParse(row).error?.issues[0]?.message ?? '';
  assert.match(wrong({ ...bench, FAIL_TO_PASS: '[not json' }), /FAIL_TO_PASS is not JSON/);
  assert.match(wrong({ ...bench, FAIL_TO_PASS: [] }), /FAIL_TO_PASS is empty/);
  assert.match(wrong({ ...bench, log_parser: 'parse_log_martian' }), /log_parser parse_log_martian is not known/);
  assert.match(wrong({ ...bench, expected_output_json: '[1]' }), /expected_output_json is not a map/);
});

test('a column that is null is absent: the columns of all data sets in one table change no task', () => {
  const content = JSON.stringify({ file_diffs: [] });
  const r2e = {
    docker_image: `namanjain12/aio_final:${'a'.repeat(40)}`,
    repo_name: 'aio',
    problem_statement: 'p',
    expected_output_json: '{"T.a": "PASSED"}',
    parsed_commit_content: content,
  };
  const smith = {
    instance_id: 'o__n.1.x',
    repo: 'swesmith/o__n.1',
    patch: replacePatch('a.py', 'x\n', 'y\n'),
    image_name: 'i',
    problem_statement: 'p',
    FAIL_TO_PASS: ['t'],
  };
  const multi = { org: 'o', repo: 'r', number: 1, fix_patch: 'f', test_patch: testPatch, language: 'go', title: 't', f2p_tests: { A: {} } };
  const own = sweTask.parse({ ...bench, image: 'docker://a/b' });
  const rows: readonly object[] = [bench, { ...bench, install_config: { test_cmd: 'pytest' } }, r2e, smith, multi, own];
  const columns = Object.fromEntries(
    rows
      .flatMap((row) => Object.keys(row))
      .concat('responses_create_params', 'instance_dict')
      .map((name) => [name, null]),
  );
  for (const row of rows) assert.deepEqual(sweTask.parse({ ...columns, ...row }), sweTask.parse(row));
});

test('a row of SWE-bench with a test command of its own is still a row, and a task with an unknown field is not one', () => {
  const options = { test_command: 'tox', log_parser: 'pytest', activate: '', setup: 'true' };
  for (const row of [bench, { ...bench, FAIL_TO_PASS: ['t'], PASS_TO_PASS: [] }]) {
    const task = sweTask.parse({ ...row, ...options });
    assert.deepEqual([task.test_command, task.log_parser, task.activate, task.setup], ['tox', 'pytest', '', 'true']);
    assert.equal(task.image, 'docker://swebench/sweb.eval.x86_64.django_1776_django-11099:latest');
  }
  const { success } = sweTask.safeParse({ ...sweTask.parse(bench), tset_setup: 'x' });
  assert.equal(success, false);
});

test('a patch that is turned around twice is the same, and new files become deleted ones', () => {
  const patch = `${replacePatch('a.py', 'one\ntwo\n', 'one\n2')}${replacePatch('b.py', '', 'new\n')}`;
  assert.equal(reversePatch(reversePatch(patch)), patch);
  assert.match(reversePatch(patch), /deleted file mode 100644\n--- a\/b\.py\n\+\+\+ \/dev\/null\n@@ -1,1 \+0,0 @@\n-new\n/);
});
