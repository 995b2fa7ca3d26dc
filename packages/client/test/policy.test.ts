// The client's pause and resume over real HTTP.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openClient } from '../src/client.ts';
import { FakeService, send } from './fake-service.ts';

const view = { mode: 'abort', policy_version: 3, generating: 2, since: '2026-01-01T00:00:00Z' };

test('a pause resolves when nothing is being sampled, after any number of long polls', async () => {
  await using service = await FakeService.open();
  await using client = openClient({ url: service.url, timeoutMs: 5000 });
  const bodies: unknown[] = [];
  service.fault = (_request, response, body) => {
    bodies.push(JSON.parse(body));
    send(response, 200, { ...view, state: bodies.length < 3 ? 'pausing' : 'paused' });
    return true;
  };
  assert.equal((await client.policy.pause({ mode: 'abort' })).state, 'paused');
  assert.deepEqual(bodies, Array(3).fill({ mode: 'abort' }));
  assert.deepEqual(service.requests, Array(3).fill('POST /v1/policy/pause?wait=25'));
});

test('a resume sends its version, and a conflict is thrown with the code of the service', async () => {
  await using service = await FakeService.open();
  await using client = openClient({ url: service.url, timeoutMs: 5000 });
  service.fault = (request, response, body) => {
    const isOld = request.method === 'POST' && JSON.parse(body).policy_version < 3;
    const error = { code: 'conflict', message: 'the policy is at version 3', blame: 'caller', retryable: false };
    send(response, isOld ? 409 : 200, isOld ? { error } : { ...view, mode: null, state: 'running' });
    return true;
  };
  assert.equal((await client.policy.resume({ policy_version: 3, caches_flushed: false })).state, 'running');
  assert.equal((await client.policy.get()).policy_version, 3);
  await assert.rejects(client.policy.resume({ policy_version: 2 }), { code: 'conflict' });
  assert.deepEqual(service.requests, ['POST /v1/policy/resume', 'GET /v1/policy', 'POST /v1/policy/resume']);
});
