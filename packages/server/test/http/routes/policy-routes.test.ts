// Pausing and resuming over HTTP: when each request returns, and what is refused.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorOf, openFloor, task } from '../floor.ts';

test('a pause returns the current state, or with wait, once the last worker has reported', async () => {
  await using floor = await openFloor();
  await floor.worker.register();
  const asked = await floor.call('POST', '/v1/policy/pause');
  assert.deepEqual([asked.status, asked.body.state, asked.body.mode], [200, 'pausing', 'wait']);
  assert.equal((await floor.call('POST', '/v1/policy/pause', { mode: 'abort' })).body.mode, 'abort');
  const waiting = floor.call('POST', '/v1/policy/pause?wait=60');
  await floor.store.reportGate(floor.worker.id, { pause: 1, generating: 1 });
  const { body } = await floor.call('GET', '/v1/policy');
  assert.deepEqual([body.state, body.mode, body.generating], ['pausing', 'abort', 1]);
  await floor.store.reportGate(floor.worker.id, { pause: 1, generating: 0 });
  const paused = await waiting;
  assert.deepEqual([paused.body.state, paused.body.generating], ['paused', 0]);
});

test('waiting for a pause ends when the time is up or when the policy is resumed', async () => {
  await using floor = await openFloor();
  await floor.worker.register();
  const late = await floor.call('POST', '/v1/policy/pause?wait=0.05');
  assert.equal(late.body.state, 'pausing');
  const waiting = floor.call('POST', '/v1/policy/pause?wait=60');
  const resumed = await floor.call('POST', '/v1/policy/resume', { policy_version: 2 });
  assert.deepEqual([resumed.body.state, resumed.body.policy_version, resumed.body.mode], ['running', 2, null]);
  assert.notEqual((await waiting).body.state, 'paused');
});

test('a resume without a body keeps the version; one with an older version is a conflict', async () => {
  await using floor = await openFloor();
  await floor.call('POST', '/v1/backends', { id: 'b', url: 'http://127.0.0.1:1', policy_version: 4 });
  assert.equal((await floor.call('POST', '/v1/policy/pause')).body.state, 'paused');
  const refused = await floor.call('POST', '/v1/policy/resume', { policy_version: 3 });
  assert.deepEqual([refused.status, errorOf(refused).code], [409, 'conflict']);
  assert.match(errorOf(refused).message, /version 4.*older version 3 without allow_lower/);
  assert.equal((await floor.call('GET', '/v1/policy')).body.state, 'paused');
  assert.deepEqual((await floor.call('POST', '/v1/policy/resume')).body.policy_version, 4);
  await floor.call('POST', '/v1/policy/resume', { policy_version: 9, caches_flushed: false });
  assert.equal((await floor.call('GET', '/v1/backends')).body.backends[0].policy_version, 9);
  const allowed = await floor.call('POST', '/v1/policy/resume', { policy_version: 3, allow_lower: true });
  assert.deepEqual([allowed.status, allowed.body.policy_version], [200, 3]);
});

test('the adapter of a resume is shown, and null returns to the base model', async () => {
  await using floor = await openFloor();
  assert.equal((await floor.call('GET', '/v1/policy')).body.adapter, null);
  assert.equal((await floor.call('POST', '/v1/policy/resume', { policy_version: 2, adapter: 'step-2' })).body.adapter, 'step-2');
  assert.equal((await floor.call('POST', '/v1/policy/resume', { policy_version: 3 })).body.adapter, 'step-2');
  assert.equal((await floor.call('POST', '/v1/policy/resume', { adapter: null })).body.adapter, null);
  assert.equal((await floor.call('POST', '/v1/policy/resume', { adapter: '' })).status, 400);
});

test('a pause of an owner is shown, and ends for its owner or by force', async () => {
  await using floor = await openFloor();
  assert.equal((await floor.call('POST', '/v1/policy/pause', { owner: 'trainer' })).body.owner, 'trainer');
  for (const [path, body] of [
    ['pause', { owner: 'other' }],
    ['resume', { policy_version: 7 }],
    ['resume', { policy_version: 7, owner: 'other' }],
  ] as const) {
    const refused = await floor.call('POST', `/v1/policy/${path}`, body);
    assert.deepEqual([refused.status, errorOf(refused).code], [409, 'conflict']);
    assert.match(errorOf(refused).message, /paused by trainer.*resume --force/);
  }
  assert.deepEqual((await floor.call('POST', '/v1/policy/resume', { owner: 'trainer' })).body.owner, null);
  await floor.call('POST', '/v1/policy/pause', { owner: 'trainer' });
  assert.equal((await floor.call('POST', '/v1/policy/resume', { force: true })).body.state, 'running');
  assert.equal((await floor.call('POST', '/v1/policy/pause', { owner: '' })).status, 400);
});

test('invalid requests are refused, and a paused policy still accepts submissions', async () => {
  await using floor = await openFloor();
  for (const [url, body] of [
    ['/v1/policy/pause', { mode: 'hard' }],
    ['/v1/policy/pause', { mode: 'wait', until: 3 }],
    ['/v1/policy/pause?wait=61', {}],
    ['/v1/policy/resume', { policy_version: -1 }],
    ['/v1/policy/resume', { policy_version: 1.5 }],
    ['/v1/policy/resume', { caches_flushed: 'no' }],
    ['/v1/policy/resume', []],
  ] as const)
    assert.equal((await floor.call('POST', url, body)).status, 400, `${url} ${JSON.stringify(body)}`);
  await floor.call('POST', '/v1/policy/pause', { mode: 'abort' });
  assert.equal((await floor.call('POST', '/v1/rollouts', { rollouts: [{ scenario: 'sums', task }] })).status, 200);
});

test('a drain ends waiting for a pause', async () => {
  await using floor = await openFloor();
  await floor.worker.register();
  const url = await floor.listen();
  const waiting = fetch(`${url}/v1/policy/pause?wait=60`, { method: 'POST' });
  while ((await floor.store.policy()).state === 'running') await new Promise(setImmediate);
  floor.app.drain();
  assert.equal((await waiting).status, 200);
});
