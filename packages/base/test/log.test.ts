// What the log says about an error.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stackOf } from '../src/log.ts';

test('a stack includes the causes of an error', () => {
  const error = new Error('outer', { cause: new Error('inner') });
  assert.match(stackOf(error), /^Error: outer\n[\s\S]*\ncaused by: Error: inner\n/);
});

test('errors that cause each other end, and what is no error is shown as text', () => {
  const [first, second] = [new Error('first'), new Error('second')];
  first.cause = second;
  second.cause = first;
  assert.equal(stackOf(first).split('caused by').length, 2);
  assert.equal(stackOf('plain'), 'plain');
});
