// Rows of APPS, TACO, LiveCodeBench, Codeforces, CodeContests and verl are recognised by their fields and become tasks.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deflateSync } from 'node:zlib';
import { codeTask } from '../../src/code/code-task.ts';

const parse = (row: Record<string, unknown>) => codeTask.parse(row);

test('an APPS row with standard input becomes a task', () => {
  const task = parse({
    problem_id: 1,
    question: 'Double it.',
    input_output: '{"inputs": ["1\\n", ["2", ""]], "outputs": ["2\\n", ["4"]]}',
    solutions: '[]',
    difficulty: 'easy',
    url: '',
    starter_code: '',
  });
  assert.deepEqual(task.tests, [
    { input: '1\n', output: '2\n' },
    { input: '2\n', output: '4' },
  ]);
  assert.equal(task.float_tolerance, 1e-5);
});

test('an APPS row with a function keeps large numbers and the list around a result', () => {
  const task = parse({
    question: 'q',
    input_output: '{"fn_name": "f", "inputs": [[[1, 2], 9007199254740993]], "outputs": [[7]]}',
    starter_code: 'def f(xs, n):',
  });
  assert.equal(task.function_name, 'f');
  assert.deepEqual(task.tests, [{ input: '[[1,2],9007199254740993]', output: '[7]', alternatives: ['7'] }]);
});

test('a TACO row has limits as text', () => {
  const task = parse({
    question: 'q',
    input_output: '{"inputs": ["1"], "outputs": ["2"]}',
    time_limit: '2.0 seconds',
    memory_limit: '256.0 megabytes',
  });
  assert.deepEqual([task.time_limit_s, task.memory_limit_mib], [2, 256]);
});

const cases = JSON.stringify([{ input: '1\n', output: '2\n', testtype: 'stdin' }]);

/** As Python's pickle writes a string, protocol 4. */
function pickled(text: string): string {
  const body = Buffer.from(text);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(body.length);
  const frame = Buffer.concat([Buffer.from([0x58]), length, body, Buffer.from([0x94, 0x2e])]);
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(frame.length));
  return deflateSync(Buffer.concat([Buffer.from([0x80, 4, 0x95]), size, frame])).toString('base64');
}

test('a LiveCodeBench row has public tests as JSON and private ones as a compressed pickle', () => {
  const row = {
    question_title: 'T',
    question_content: 'C',
    platform: 'atcoder',
    public_test_cases: cases,
    private_test_cases: pickled(cases),
    metadata: '{}',
    starter_code: '',
  };
  const task = parse(row);
  assert.equal(task.question, 'T\n\nC');
  assert.equal(task.tests.length, 2);
  assert.deepEqual(task.tests[1], { input: '1\n', output: '2\n' });
});

test('a functional LiveCodeBench row has one argument per line', () => {
  const functional = JSON.stringify([{ input: '[1, 2]\n"x"', output: 'true', testtype: 'functional' }]);
  const task = parse({ question_content: 'C', public_test_cases: functional, private_test_cases: '', metadata: '{"func_name": "check"}' });
  assert.deepEqual([task.function_name, task.tests], ['check', [{ input: '[[1, 2],"x"]', output: 'true' }]]);
});

test('a Codeforces row has limits, a checker and each test once', () => {
  const one = { input: '1', output: '2' };
  const row = {
    description: 'D',
    input_format: 'I',
    time_limit: 1.5,
    memory_limit: 64,
    examples: [one],
    official_tests: [one, { input: '2', output: '4' }],
    generated_checker: 'print(1)',
    input_mode: 'stdio',
  };
  const task = parse(row);
  assert.equal(task.tests.length, 2);
  assert.deepEqual([task.time_limit_s, task.memory_limit_mib, task.checker?.verdict], [1.5, 64, 'stdout']);
  assert.throws(() => parse({ ...row, interaction_format: 'ask' }), /interactive problems are not supported/);
});

test('a CodeContests row has its tests in columns', () => {
  const task = parse({
    description: 'D',
    public_tests: { input: ['1'], output: ['2'] },
    private_tests: { input: ['2'], output: ['4'] },
    generated_tests: { input: [], output: [] },
    time_limit: { seconds: 2, nanos: 500_000_000 },
    memory_limit_bytes: 268_435_456,
  });
  assert.deepEqual([task.tests.length, task.time_limit_s, task.memory_limit_mib], [2, 2.5, 256]);
});

test('a verl row has its tests in reward_model', () => {
  const row = { data_source: 'x', prompt: [{ role: 'user', content: 'Double it.' }], reward_model: { style: 'rule', ground_truth: cases } };
  assert.equal(parse(row).question, 'Double it.');
});

test('options of a task may stand next to the fields of a row', () => {
  assert.equal(parse({ question: 'q', input_output: { inputs: ['1'], outputs: ['2'] }, credit: 'partial' }).credit, 'partial');
});

test('a column that is null is absent: the columns of all data sets in one table change no task', () => {
  const rows: readonly Record<string, unknown>[] = [
    { question: 'q', input_output: { inputs: ['1'], outputs: ['2'] } },
    { question_content: 'C', public_test_cases: cases },
    { description: 'D', official_tests: [{ input: '1', output: '2' }] },
    { description: 'D', private_tests: { input: ['2'], output: ['4'] } },
    { prompt: [{ role: 'user', content: 'q' }], reward_model: { ground_truth: cases } },
    { question: 'q', tests: [{ input: '1', output: '2' }] },
  ];
  const columns = Object.fromEntries(
    rows
      .flatMap((row) => Object.keys(row))
      .concat('credit', 'checker')
      .map((name) => [name, null]),
  );
  for (const row of rows) assert.deepEqual(parse({ ...columns, ...row }), parse(row));
});

test('a row that cannot be used is refused with its field', () => {
  const refused = codeTask.safeParse({ question: 'q', input_output: '{broken' });
  assert.match(String(refused.error), /input_output is not JSON/);
  assert.match(
    String(codeTask.safeParse({ question_content: 'q', private_test_cases: 'xyz' }).error),
    /private_test_cases is neither JSON nor/,
  );
});
