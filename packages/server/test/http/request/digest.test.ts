// The digest of a request is that of its canonical JSON, whether it is made at once or in steps.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { Pace, runNow } from '@millrace/base/pace';
import { toDigest } from '../../../src/http/request/digest.ts';

const canonical: readonly (readonly [unknown, string])[] = [
  [1, '1'],
  [null, 'null'],
  [undefined, 'null'],
  ['a"é', '"a\\"é"'],
  [[], '[]'],
  [{}, '{}'],
  [[[], {}, [[]]], '[[],{},[[]]]'],
  [{ b: 1, a: undefined, A: [undefined, 2] }, '{"A":[null,2],"b":1}'],
  [{ tasks: [{ y: { d: 1, c: [{ f: 1, e: 2 }] }, x: 1 }, 2], n: {} }, '{"n":{},"tasks":[{"x":1,"y":{"c":[{"e":2,"f":1}],"d":1}},2]}'],
];

test('the order of keys does not matter, and absent fields do not count', async () => {
  for (const [value, json] of canonical) {
    const digest = createHash('sha256').update(json).digest('hex');
    assert.equal(runNow(toDigest(value)), digest, json);
    assert.equal(await new Pace().run(toDigest(value)), digest, json);
  }
});

test('there is a pause after each item of a list', async () => {
  const pauses = [...toDigest({ tasks: Array.from({ length: 100 }, (_, at) => ({ at })) })].length;
  assert.ok(pauses >= 100, `${pauses}`);
});

test('nesting deep enough to exhaust a stack is refused', () => {
  const deep = JSON.parse(`${'['.repeat(200)}${']'.repeat(200)}`);
  assert.throws(() => runNow(toDigest(deep)), { code: 'bad-request', message: /deeper than 100 levels/ });
});
