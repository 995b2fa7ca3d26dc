// Keys, loopback addresses, and web pages that pose as local callers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkListen } from '../../../src/http/request/auth.ts';
import { httpConfig } from '../../../src/http/request/http-config.ts';
import { openFloor, task } from '../floor.ts';

const keys = ['first-key-0123456789', 'second-key-012345678'];
const none = { keys: [], submitKeys: [], readKeys: [], workerKeys: [] };

test('the service does not listen on a public address without a key', () => {
  for (const host of ['0.0.0.0', '::', '10.0.0.1', 'node7', '127.0.0.1.example.org']) {
    assert.throws(() => checkListen({ host, ...none }), /refusing to listen on .* without a key: add a key/);
    for (const some of Object.keys(none)) checkListen({ host, ...none, [some]: keys });
  }
  for (const host of ['127.0.0.1', '127.8.8.8', 'localhost', '::1']) checkListen({ host, ...none });
});

test('the configuration refuses keys that are too short or cannot be sent in a header', () => {
  for (const key of ['short', 'has spaces in its middle', 'ümlaut-key-0123456789'])
    assert.equal(httpConfig.safeParse({ keys: [key] }).success, false);
});

test('with keys, every route requires one, except those that supervisors and load balancers ask', async () => {
  await using floor = await openFloor({ config: { keys } });
  const status = async (url: string, authorization?: string) =>
    (await floor.app.inject({ url, headers: authorization === undefined ? {} : { authorization } })).statusCode;
  assert.equal(await status('/healthz'), 200);
  assert.equal(await status('/readyz'), 503, 'no worker is there yet');
  for (const url of ['/v1/status', '/metrics', '/openapi.json', '/status', '/nowhere', '/v1/events'])
    assert.equal(await status(url), 401, url);
  for (const key of keys) assert.equal(await status('/v1/status', `Bearer ${key}`), 200);
  for (const wrong of ['Bearer ', 'Bearer x', `Basic ${keys[0]}`, `Bearer ${keys[0]}x`, `${keys[0]}`, `Bearer ${keys.join(' ')}`]) {
    assert.equal(await status('/v1/status', wrong), 401, wrong);
  }
  const refused = await floor.app.inject({ method: 'POST', url: '/v1/rollouts', payload: '{"broken' });
  assert.equal(refused.statusCode, 401);
  assert.equal(refused.headers['www-authenticate'], 'Bearer');
  assert.equal(refused.json().error.code, 'unauthorized');
});

test('a key that may only read cannot submit, one that may submit cannot change the service, and each refusal says what is needed', async () => {
  const config = {
    keys: ['admin-key-0123456789'],
    submitKeys: ['submit-key-0123456789'],
    readKeys: ['reader-key-0123456789'],
    workerKeys: ['worker-key-0123456789'],
  };
  await using floor = await openFloor({ config });
  const call = (key: string, method: 'GET' | 'POST' | 'DELETE', url: string, payload?: object) =>
    floor.app.inject({ method, url, headers: { authorization: `Bearer ${key}` }, ...(payload ? { payload } : {}) });
  const statuses = async (key: string) => [
    (await call(key, 'GET', '/v1/status')).statusCode,
    (await call(key, 'POST', '/v1/rollouts', { rollouts: [{ scenario: 'sums', task }] })).statusCode,
    (await call(key, 'DELETE', '/v1/rollouts/r-1')).statusCode,
    (await call(key, 'POST', '/process', {})).statusCode === 403 ? 403 : 200,
    (await call(key, 'POST', '/v1/policy/pause', {})).statusCode,
    (await call(key, 'DELETE', '/v1/backends/b')).statusCode,
  ];
  assert.deepEqual(await statuses('reader-key-0123456789'), [200, 403, 403, 403, 403, 403]);
  assert.deepEqual(await statuses('submit-key-0123456789'), [200, 200, 200, 200, 403, 403]);
  assert.deepEqual(await statuses('admin-key-0123456789'), [200, 200, 200, 200, 200, 404]);
  const work = async (key: string) => [
    (await call(key, 'GET', '/v1/join?wire=1')).statusCode,
    (await call(key, 'POST', '/v1/worker-calls/policy')).statusCode === 403 ? 403 : 200,
    (await call(key, 'GET', '/v1/join')).statusCode,
  ];
  assert.deepEqual(await statuses('worker-key-0123456789'), [403, 403, 403, 403, 403, 403]);
  assert.deepEqual(await work('worker-key-0123456789'), [200, 200, 403], 'the password of the store needs every right');
  assert.deepEqual(await work('submit-key-0123456789'), [403, 403, 403]);
  assert.deepEqual(await work('admin-key-0123456789'), [200, 200, 200]);
  const refused = await call('reader-key-0123456789', 'POST', '/v1/rollouts', { rollouts: [] });
  assert.match(refused.json().error.message, /^POST \/v1\/rollouts needs a key with the right to submit$/);
});

test('with a key, any Host is accepted', async () => {
  await using floor = await openFloor({ config: { keys } });
  const headers = { host: 'rollouts.example.org', authorization: `Bearer ${keys[0]}` };
  assert.equal((await floor.app.inject({ url: '/v1/status', headers })).statusCode, 200);
});

test('without a key, a Host or Origin that is not loopback is refused', async () => {
  await using floor = await openFloor();
  const status = async (headers: Record<string, string>) => (await floor.app.inject({ method: 'POST', url: '/start', headers })).statusCode;
  for (const host of ['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example:8007', '10.0.0.1', '@', '127.0.0.1@evil.example']) {
    assert.equal(await status({ host }), 403, host);
  }
  for (const origin of ['https://evil.example', 'null', 'http://localhost.evil.example'])
    assert.equal(await status({ origin }), 403, origin);
  const good = ['localhost', 'LOCALHOST:8007', '127.0.0.1:8007', '[::1]:8007', '127.1.2.3'];
  for (const host of good) assert.notEqual(await status({ host, origin: 'http://127.0.0.1:8007' }), 403, host);
});

test('without a key, a cross-site request without an Origin is refused, and programs and pages of this machine are served', async () => {
  await using floor = await openFloor();
  const status = async (headers: Record<string, string>, method: 'GET' | 'POST' | 'DELETE' = 'POST') =>
    (await floor.app.inject({ method, url: method === 'POST' ? '/start' : '/v1/rollouts/r', headers })).statusCode;
  const browser = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64)' };
  const foreign: Record<string, string>[] = [
    { ...browser, 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'cross-site', 'content-type': 'text/plain' },
    { ...browser, referer: 'https://evil.example/page' },
    { referer: 'http://localhost.evil.example/', 'content-type': 'application/x-www-form-urlencoded' },
    { ...browser, referer: 'about:blank', 'sec-fetch-site': 'same-origin' },
  ];
  for (const headers of foreign)
    for (const method of ['GET', 'POST', 'DELETE'] as const)
      assert.equal(await status(headers, method), 403, JSON.stringify([method, headers]));
  assert.deepEqual([await status(browser), await status(browser, 'DELETE'), await status(browser, 'GET')], [403, 403, 404]);
  const own: Record<string, string>[] = [
    { 'user-agent': 'curl/8.5.0' },
    {},
    { ...browser, 'sec-fetch-site': 'same-origin' },
    { ...browser, referer: 'http://127.0.0.1:8007/docs' },
    { ...browser, origin: 'http://localhost:3000', 'sec-fetch-site': 'cross-site' },
  ];
  for (const headers of own) assert.notEqual(await status(headers), 403, JSON.stringify(headers));
});

test('bodies that a page can send to another site without asking are refused', async () => {
  await using floor = await openFloor();
  const payload = JSON.stringify({ rollouts: [{ scenario: 'sums', task }] });
  for (const type of [
    'text/plain',
    'text/plain;application/json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
  ]) {
    const reply = await floor.app.inject({ method: 'POST', url: '/v1/rollouts', headers: { 'content-type': type }, payload });
    assert.equal(reply.statusCode, 415, type);
  }
});

test('the submissions of each key are a class of their own, under a name that does not reveal the key', async () => {
  await using floor = await openFloor({ config: { keys } });
  for (const key of keys) {
    const payload = { rollouts: [{ scenario: 'sums', task }] };
    const reply = await floor.app.inject({ method: 'POST', url: '/v1/rollouts', headers: { authorization: `Bearer ${key}` }, payload });
    assert.equal(reply.statusCode, 200, reply.body);
  }
  const classes = await floor.store.classes();
  assert.deepEqual(
    classes.map(({ kind, queued }) => [kind, queued]),
    [
      ['plain', 1],
      ['plain', 1],
    ],
  );
  assert.ok(classes.every(({ name }) => /^[0-9a-f]{12}$/.test(name)));
});

test('keys are replaced while the service runs: the new one counts at once, the old one no more, and one is left', async () => {
  const [old, next] = keys as [string, string];
  await using floor = await openFloor({ config: { keys: [old] } });
  const status = async (key: string) =>
    (await floor.app.inject({ url: '/v1/policy', headers: { authorization: `Bearer ${key}` } })).statusCode;
  floor.app.useKeys({ ...none, keys: [old, next] });
  assert.deepEqual([await status(old), await status(next)], [200, 200]);
  floor.app.useKeys({ ...none, keys: [next] });
  assert.deepEqual([await status(old), await status(next)], [401, 200]);
  assert.throws(() => floor.app.useKeys(none), /needs at least one/);
  assert.equal(await status(next), 200);
});
