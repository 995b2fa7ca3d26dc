// Bodies that are refused for their shape, before they are parsed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runNow } from '@millrace/base/pace';
import { measureLoopBlock } from '@millrace/testkit/plain';
import { findShapeFault } from '../../../src/http/request/json-shape.ts';
import { openFloor } from '../floor.ts';

const fields = (count: number) => Array.from({ length: count }, (_, at) => `"f${at}":1`).join(',');
const submissionWith = (inner: string) => `{"rollouts":[{"scenario":"free","task":{${inner}}}]}`;

/** The least of three times: other processes on the machine lengthen one. */
async function leastBlock(work: () => Promise<void>): Promise<number> {
  return Math.min(await measureLoopBlock(work), await measureLoopBlock(work), await measureLoopBlock(work));
}

/** Bodies whose shape alone makes them slow. */
const refused: Readonly<Record<string, string>> = {
  '200,000 unknown fields of the request': `{${fields(200_000)}}`,
  '200,000 unknown fields of a rollout': `{"rollouts":[{"scenario":"sums","task":{},${fields(200_000)}}]}`,
  '200,000 fields of a task': submissionWith(fields(200_000)),
  '200,000 times the same field': submissionWith(Array.from({ length: 200_000 }, () => '"a":1').join(',')),
  'half a million nested lists': submissionWith(`"a":${'['.repeat(500_000)}${']'.repeat(500_000)}`),
  '150,000 nested objects': submissionWith(`"a":${'{"a":'.repeat(150_000)}1${'}'.repeat(150_000)}`),
  '200,000 open lists': '['.repeat(200_000),
  '90,000 different names in small objects': submissionWith(
    `"a":[${Array.from({ length: 9000 }, (_, at) => `{${fields(10).replaceAll('f', `f${at}_`)}}`).join(',')}]`,
  ),
  '50,000 objects of a task': submissionWith(`"tests":[${'{"input":"1","output":"2"},'.repeat(50_000)}{}]`),
  '200,000 empty objects': `{"rollouts":[${'{},'.repeat(200_000)}{}]}`,
  '400,000 commas': ','.repeat(400_000),
  '300,000 numbers of a task': submissionWith(`"a":[${'1,'.repeat(300_000)}1]`),
};

for (const [what, payload] of Object.entries(refused))
  test(`${what} are refused with a short message and without blocking the event loop`, async () => {
    await using floor = await openFloor();
    const headers = { 'content-type': 'application/json' };
    for (const url of ['/v1/rollouts', '/v1/batches', '/v1/evaluations', '/v1/backends', '/process']) {
      let reply = '';
      const blockedMs = await leastBlock(async () => {
        const { statusCode, body } = await floor.app.inject({ method: 'POST', url, payload, headers });
        reply = `${statusCode} ${body}`;
      });
      assert.match(reply, /^400 .*(?:more than \d+ (?:fields|different names|values)|nested deeper than 100 levels), at position \d+/);
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
  const shapeOf = (text: string) => runNow(findShapeFault(Buffer.from(text)));
  assert.equal(shapeOf(JSON.stringify({ a: '['.repeat(1000), b: ':'.repeat(20_000), c: `\\"${'{'.repeat(1000)}` })), undefined);
  assert.equal(shapeOf(`"\\\\"${'['.repeat(100)}`), undefined);
  assert.match(shapeOf(`"\\\\"${'['.repeat(101)}`) ?? '', /nested deeper than 100 levels, at position 104/);
  assert.equal(shapeOf(`{${fields(10_000)}}`), undefined);
  assert.match(shapeOf(`{${fields(10_001)}}`) ?? '', /more than 10000 fields/);
  assert.equal(shapeOf(`[${`{${fields(1000)}},`.repeat(20)}1]`), undefined);
});

test('a batch of 1,000 tasks of 10 kB each is not refused', () => {
  const tests = Array.from({ length: 40 }, (_, at) => ({ input: `${at} `.repeat(20), output: 'x'.repeat(100) }));
  const tasks = Array.from({ length: 1000 }, (_, at) => ({ question: `${at}`.repeat(500), tests }));
  assert.equal(runNow(findShapeFault(Buffer.from(JSON.stringify({ scenario: 'code', tasks })))), undefined);
});

/** How many turns the event loop takes meanwhile. */
async function countTurns(work: () => Promise<unknown>): Promise<number> {
  let [turns, isOver] = [0, false];
  const tick = () => {
    turns += 1;
    if (!isOver) setImmediate(tick);
  };
  setImmediate(tick);
  await work();
  isOver = true;
  return turns;
}

test('a long body is read in slices, between which the event loop turns', async () => {
  await using floor = await openFloor();
  const headers = { 'content-type': 'application/json' };
  const send = (bytes: number) =>
    countTurns(() => floor.app.inject({ method: 'POST', url: '/v1/backends', payload: `{${' '.repeat(bytes)}}`, headers }));
  await send(1);
  // While a request waits for something else, the loop turns too: on a busy machine often, but not in each of five requests.
  const shorts = [];
  for (let at = 0; at < 5; at += 1) shorts.push(await send(1000));
  const [short, long] = [Math.min(...shorts), await send(8 << 20)];
  assert.ok(long - short > 10, `${short} and ${long} turns`);
});

test('many query parameters, many headers and long ids do not block the event loop', async () => {
  await using floor = await openFloor();
  const long = 'a'.repeat(15_000);
  const requests = [
    { url: `/v1/rollouts?${Array.from({ length: 3000 }, (_, at) => `${at}=1`).join('&')}` },
    { url: `/v1/rollouts?${'a[]=1&'.repeat(2500)}` },
    { url: `/v1/rollouts?limit=${'%41'.repeat(5000)}` },
    { url: `/v1/rollouts/${long}` },
    { url: `/v1/batches/${'%2F'.repeat(5000)}` },
    { url: `/v1/evaluations/${'../'.repeat(5000)}` },
    { url: '/v1/rollouts', headers: Object.fromEntries(Array.from({ length: 1500 }, (_, at) => [`x-${at}`, '1'])) },
    { url: '/v1/rollouts', headers: { authorization: `Bearer ${long}`, cookie: 'a=1;'.repeat(3000), accept: 'a/b,'.repeat(3000) } },
  ];
  for (const request of requests) {
    const blockedMs = await leastBlock(async () => {
      const { statusCode } = await floor.app.inject({ method: 'GET', ...request });
      assert.ok(statusCode < 500, `${statusCode}`);
    });
    assert.ok(blockedMs < 20, `${request.url.slice(0, 40)}: ${blockedMs} ms`);
  }
});
