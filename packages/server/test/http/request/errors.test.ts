// Responses to invalid, hostile or broken requests: always the same shape, never internal details.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { errorBody } from '@millrace/protocol';
import { errorOf, type Floor, openFloor, shareFloor, task, toId } from '../floor.ts';

const sharedFloor = shareFloor();

const submit = { method: 'POST', url: '/v1/rollouts', headers: { 'content-type': 'application/json' } } as const;

async function post(floor: Floor, payload: string | Buffer, headers: Record<string, string> = {}) {
  const reply = await floor.app.inject({ ...submit, headers: { ...submit.headers, ...headers }, payload });
  const { error } = errorBody.parse(reply.json());
  return { status: reply.statusCode, ...error };
}

test('invalid JSON is refused with the position of the error', async () => {
  const floor = sharedFloor();
  const broken: readonly [string, number][] = [
    ['{"rollouts": nope}', 14],
    ['{"rollouts":[],}', 15],
    ['{"rollouts":[', 13],
    [`{"a":"${'x'.repeat(1000)}", "b": tru!}`, 1017],
    ['x', 0],
  ];
  for (const [body, position] of broken) {
    const { status, code, details, message } = await post(floor, body);
    assert.deepEqual([status, code, details?.position], [400, 'bad-request', position], `${body}: ${message}`);
  }
});

test('a body that is not UTF-8, has another content type, or is too large is refused with the reason', async () => {
  await using floor = await openFloor({ config: { maxBodyBytes: 2048 } });
  const invalid = await post(floor, Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d]));
  assert.deepEqual([invalid.status, invalid.message], [400, 'the body is not valid UTF-8']);
  assert.equal((await post(floor, 'a=1', { 'content-type': 'application/x-www-form-urlencoded' })).code, 'unsupported-media-type');
  assert.equal((await post(floor, JSON.stringify({ rollouts: ['x'.repeat(4096)] }))).code, 'body-too-large');
  assert.equal((await post(floor, '')).status, 400);
  for (const body of ['[]', '1', 'null', '"x"', '{"rollouts":[]}', '{"rollouts":{}}', '{"rollouts":[null]}', '{"rollouts":[[]]}']) {
    assert.equal((await post(floor, body)).code, 'bad-request', body);
  }
});

test('keys that pollute prototypes are refused at any depth', async () => {
  const floor = sharedFloor();
  const bodies = [
    '{"rollouts":[{"scenario":"free","task":{"__proto__":{"admin":true}}}]}',
    '{"__proto__":{"rollouts":[]}}',
    '{"rollouts":[{"scenario":"free","task":{"a":[{"constructor":{"prototype":{"admin":true}}}]}}]}',
    '{"rollouts":[{"scenario":"free","task":{"\\u005f_proto__":1}}]}',
  ];
  for (const body of bodies) assert.equal((await post(floor, body)).status, 400, body);
  assert.equal(Reflect.get({}, 'admin'), undefined);
  const words = { constructor: 'Brunel', text: '"__proto__": is only text', hasOwnProperty: 1 };
  await floor.submit({ scenario: 'free', task: words, id: 'words' });
  assert.deepEqual((await floor.store.get(toId('words')))?.submission.task, words);
});

test('excessive nesting is refused, and large strings are not', async () => {
  const floor = sharedFloor();
  const deep = (levels: number) => `{"rollouts":[{"scenario":"free","task":{"a":${'['.repeat(levels)}${']'.repeat(levels)}}}]}`;
  for (const levels of [200, 200_000]) assert.match((await post(floor, deep(levels))).message, /nested deeper than 100 levels/);
  await floor.submit({ scenario: 'free', task: { text: 'x'.repeat(10 << 20) } });
  const long = await post(floor, JSON.stringify({ rollouts: [{ scenario: 'sums', task: { ...task, ['x'.repeat(1 << 20)]: 1 } }] }));
  assert.equal(long.code, 'task-invalid');
  assert.ok(long.message.length < 1000);
  const many = await post(
    floor,
    JSON.stringify({ rollouts: [{ scenario: 'sums', task: Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [i, i])) }] }),
  );
  assert.equal(many.details?.fault_count, 5002);
});

test('unknown routes, wrong methods and wrong parameters get the same shape', async () => {
  const floor = sharedFloor();
  const code = async (method: 'GET' | 'POST' | 'DELETE', url: string) => errorOf(await floor.call(method, url)).code;
  assert.equal(await code('GET', '/nowhere'), 'not-found');
  assert.equal(await code('GET', '/v1/rollouts/'), 'bad-request');
  assert.equal(await code('DELETE', '/v1/rollouts'), 'method-not-allowed');
  assert.equal(await code('POST', '/v1/rollouts/a'), 'method-not-allowed');
  assert.equal(await code('GET', `/v1/rollouts/${'x'.repeat(300)}`), 'bad-request');
  assert.equal(await code('GET', '/v1/rollouts/%2e%2e%2fsecret'), 'bad-request');
  assert.equal(await code('GET', '/v1/rollouts/%zz'), 'bad-request');
  assert.equal(await code('GET', '/v1/status?verbose=1'), 'bad-request');
  for (const method of ['PUT', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND'] as const) {
    const reply = await floor.app.inject({ method: method as 'PUT', url: '/v1/rollouts' });
    assert.equal(reply.statusCode, 405, method);
    assert.equal(reply.headers.allow, 'POST, GET');
  }
});

test('HEAD responds like GET without a body, except for endless streams', async () => {
  const floor = sharedFloor();
  const head = await floor.app.inject({ method: 'HEAD', url: '/healthz' });
  assert.deepEqual([head.statusCode, head.body], [200, '']);
  assert.equal((await floor.app.inject({ method: 'HEAD', url: '/v1/events' })).statusCode, 405);
});

test('an internal failure does not reveal its details', async () => {
  await using floor = await openFloor({
    wrap: (store) => new Proxy(store, { get: (target, name) => (name === 'get' ? fail : Reflect.get(target, name)) }),
  });
  const fail = () => Promise.reject(new Error('secret path /var/lib/x'));
  const reply = await floor.app.inject({ url: '/v1/rollouts/a' });
  assert.equal(reply.statusCode, 500);
  assert.equal(errorBody.parse(reply.json()).error.code, 'internal');
  assert.doesNotMatch(reply.body, /secret|\.ts|at /);
});

test('a slow request is cut off, and bytes that are not a request get an error', async () => {
  await using floor = await openFloor({ config: { requestTimeoutMs: 200 } });
  const { port } = new URL(await floor.listen());
  const say = async (bytes: string) => {
    const socket = connect(Number(port), '127.0.0.1');
    socket.write(bytes);
    const [head = '', body = ''] = (await text(socket)).split('\r\n\r\n');
    return { head, code: errorBody.parse(JSON.parse(body)).error.code };
  };
  const late = await say(
    'POST /v1/rollouts HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"roll',
  );
  assert.equal(late.code, 'request-timeout');
  assert.match(late.head, /^HTTP\/1\.1 408 /);
  assert.equal((await say('GET /healthz HTTP/1.1\r\nhost: loc')).code, 'request-timeout');
  assert.equal((await say('\x16\x03\x01 hello\r\n\r\n')).code, 'bad-request');
  assert.equal((await say(`GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: ${'y'.repeat(40_000)}\r\n\r\n`)).code, 'bad-request');
});
