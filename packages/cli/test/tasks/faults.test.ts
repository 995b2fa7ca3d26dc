// What the service refuses, named by file and line.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RolloutError } from '@millrace/protocol';
import { locateFaults, renderFaults } from '../../src/tasks/faults.ts';

const place = { source: 'tasks.jsonl', lines: [2, 17, 18] };
const locate = (message: string, details?: Record<string, unknown>) => {
  const error = locateFaults(new RolloutError('task-invalid', message, details === undefined ? {} : { details }), place);
  return error instanceof Error ? error.message : '';
};

test('a fault is named by the line of its submission, by index or by path', () => {
  const faults = [
    { index: 1, path: 'task.answer', message: 'expected string' },
    { index: 2, path: '', message: 'is bad' },
  ];
  assert.equal(locate('two faults', { faults }), 'tasks.jsonl:17: task.answer: expected string\n  tasks.jsonl:18: is bad');
  assert.equal(
    locate('a fault', { faults: [{ path: 'rollouts[1].task.answer', message: 'expected string' }] }),
    'tasks.jsonl:17: task.answer: expected string',
  );
});

test('every line with the same fault is named, in one row', () => {
  const faults = [7, 1, 2, 3, 2].map((line) => ({ line, reason: 'scenario: unknown' }));
  assert.deepEqual(renderFaults([...faults, { line: 3, reason: 'id: bad' }], { source: 'f' }), [
    '  f:1-3, 7: scenario: unknown',
    '  f:3: id: bad',
  ]);
  const spread = Array.from({ length: 30 }, (_, n) => ({ line: 1 + 2 * n, reason: 'bad' }));
  assert.match(renderFaults(spread, { source: 'f' })[0] ?? '', /^ {2}f:1, 3, .*, 39 and 10 more lines: bad$/);
  assert.deepEqual(renderFaults(faults.slice(0, 2), { source: 'f', names: ['a'] }), ['  a: scenario: unknown', '  f:7: scenario: unknown']);
});

test('a message that names an index is read where no list of faults comes with it', () => {
  assert.equal(locate('rollouts[1].scenario: there is no scenario x'), 'tasks.jsonl:17: scenario: there is no scenario x');
  assert.equal(locate('rollouts[99].scenario: unknown'), 'rollouts[99].scenario: unknown');
});

test('a fault outside the file, and an error of another kind, stay as they are', () => {
  assert.equal(locate('the body is wrong', { faults: [{ path: 'rollout', message: 'unknown field' }] }), 'the body is wrong');
  const other = new RolloutError('internal', 'rollouts[0] no answer');
  assert.equal(locateFaults(other, place), other);
});
