// Bodies that are refused for their shape, before they are parsed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { measureLoopBlock } from '@millrace/testkit/plain';
import { findShapeFault } from '../../../src/http/request/json-shape.ts';
import { openFloor } from '../floor.ts';

const fields = (count: number) => Array.from({ length: count }, (_, at) => `"f${at}":1`).join(',');
const submissionWith = (inner: string) => `{"rollouts":[{"scenario":"free","task":{${inner}}}]}`;

/** Bodies whose shape alone makes them slow. */
const refused: Readonly<Record<string, string>> = {
  '200,000 unknown fields of the request': `{${fields(200_000)}}`,
  '200,000 unknown fields of a rollout': `{"rollouts":[{"scenario":"sums","task":{},${fields(200_000)}}]}`,
  '200,000 fields of a task': submissionWith(fields(200_000)),
  '200,000 times the same field': submissionWith(Array.from({ length: 200_000 }, () => '"a":1').join(',')),
  'half a million nested lists': submissionWith(`"a":${'['.repeat(500_000)}${']'.repeat(500_000)}`),
  '150,000 nested objects': submissionWith(`"a":${'{"a":'.repeat(150_000)}1${'}'.repeat(150_000)}`),
  '200,000 open lists': '['.repeat(200_000),
};

for (const [what, payload] of Object.entries(refused))
  test(`${what} are refused with a short message and without blocking the event loop`, async () => {
    await using floor = await openFloor();
    const headers = { 'content-type': 'application/json' };
    for (const url of ['/v1/rollouts', '/v1/batches', '/v1/evaluations', '/v1/backends', '/process']) {
      let reply = '';
      const blockedMs = await measureLoopBlock(async () => {
        const { statusCode, body } = await floor.app.inject({ method: 'POST', url, payload, headers });
        reply = `${statusCode} ${body}`;
      });
      assert.match(reply, /^400 .*(?:more than 10000 fields|nested deeper than 100 levels), at position \d+/);
      assert.ok(reply.length < 400, `${reply.length} characters`);
      assert.ok(blockedMs < 20, `${url}: ${blockedMs} ms`);
    }
  });

test('a list with more faulty items than the stack can hold is refused, and so are 200,000 rollouts', async () => {
  await using floor = await openFloor();
  const items = Array.from({ length: 200_000 }, () => 1);
  const tooMany = await floor.call('POST', '/v1/rollouts', {
    rollouts: [{ scenario: 'sums', task: { question: 'q', answer: 'a', hints: items } }],
  });
  assert.equal(tooMany.status, 400);
  assert.equal((await floor.call('POST', '/v1/rollouts', { rollouts: items })).status, 400);
});

test('brackets and colons inside texts do not count, and an escaped quote does not end a text', () => {
  const shapeOf = (text: string) => findShapeFault(Buffer.from(text));
  assert.equal(shapeOf(JSON.stringify({ a: '['.repeat(1000), b: ':'.repeat(20_000), c: `\\"${'{'.repeat(1000)}` })), undefined);
  assert.equal(shapeOf(`"\\\\"${'['.repeat(100)}`), undefined);
  assert.match(shapeOf(`"\\\\"${'['.repeat(101)}`) ?? '', /nested deeper than 100 levels, at position 104/);
  assert.equal(shapeOf(`{${fields(10_000)}}`), undefined);
  assert.match(shapeOf(`{${fields(10_001)}}`) ?? '', /more than 10000 fields/);
  assert.equal(shapeOf(`[${`{${fields(1000)}},`.repeat(20)}1]`), undefined);
});
