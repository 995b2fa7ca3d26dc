// Rows of data sets hold JSON and archives as texts: a long one is read in a thread, and says the same as a short one.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deflateSync } from 'node:zlib';
import { codeTask } from '../../src/code/code-task.ts';
import { sweTask } from '../../src/swe/task/swe-task.ts';
import { letsLoopTurn } from './loop-turn.ts';

const lists = `[${'[],'.repeat(100_000)}[]]`;
/** A pickle of one string of this many spaces, compressed to a thousandth. */
const pickle = (length: number) => {
  const head = Buffer.from([0x80, 4, 0x58, 0, 0, 0, 0]);
  head.writeUInt32LE(length, 3);
  return deflateSync(Buffer.concat([head, Buffer.alloc(length, ' ')])).toString('base64');
};

const slow: Readonly<Record<string, readonly [typeof codeTask | typeof sweTask, object]>> = {
  'an archive that holds a thousand times its size': [
    codeTask,
    { question_content: 'q', public_test_cases: '[]', private_test_cases: pickle(64 << 20) },
  ],
  'many lists as JSON': [codeTask, { question: 'q', input_output: lists }],
  'many lists as the truth of verl': [codeTask, { prompt: 'q', reward_model: { ground_truth: lists } }],
  'the tests of a function': [codeTask, { question: 'q', function_name: 'f', tests: [{ input: lists, output: lists }] }],
  'lists of test names': [sweTask, { instance_id: 'a__b-1', repo: 'a/b', version: '1', FAIL_TO_PASS: lists, PASS_TO_PASS: lists }],
  'a row inside of a row': [sweTask, { instance_dict: lists }],
};

for (const [what, [schema, row]] of Object.entries(slow))
  test(`${what}: the event loop turns while it is read`, async () => {
    assert.ok(await letsLoopTurn(() => schema.safeParseAsync(row)));
  });

test('a long row that cannot be used is refused with its field, as a short one is', async () => {
  for (const padding of ['', ' '.repeat(10_000)]) {
    const parsed = await codeTask.safeParseAsync({ question: `q${padding}`, input_output: '{"inputs": [' });
    assert.ok(!parsed.success);
    assert.match(JSON.stringify(parsed.error.issues), /input_output/);
    const unsolvable = await codeTask.safeParseAsync({
      question: 'q',
      function_name: 'f',
      tests: [
        { input: `[1${padding}]`, output: '1' },
        { input: `[1${padding}`, output: '1' },
      ],
    });
    assert.ok(!unsolvable.success);
    assert.deepEqual(unsolvable.error.issues[0]?.path, ['tests', 1, 'input']);
  }
});

test('a long row is read as a short one is', async () => {
  const row = { inputs: ['1\n'], outputs: ['2\n'] };
  for (const padding of ['', ' '.repeat(10_000)]) {
    const parsed = await codeTask.safeParseAsync({
      question: 'q',
      input_output: JSON.stringify(row) + padding,
      credit: 'partial',
    });
    assert.ok(parsed.success);
    const { tests, credit } = parsed.data;
    assert.deepEqual([tests, credit], [[{ input: '1\n', output: '2\n' }], 'partial']);
  }
});
