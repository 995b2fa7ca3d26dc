// Calls to a service that refuses, restarts, stays down or is not there, and what the caller sees.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RolloutError } from '@millrace/protocol';
import { openClient } from '../src/client.ts';
import { FakeService, send, withBoth } from './fake-service.ts';

test('a refusal is thrown with the code, message and details of the service', () =>
  withBoth(async (service, client) => {
    service.fault = (_request, response) => {
      const error = { code: 'task-invalid', message: 'task.answer is missing', blame: 'caller', retryable: false, details: { line: 3 } };
      send(response, 400, { error });
      return true;
    };
    await assert.rejects(client.submit([{ scenario: 'math', task: {} }]), (error: RolloutError) => {
      assert.ok(error instanceof RolloutError);
      assert.deepEqual([error.code, error.message, error.details], ['task-invalid', 'task.answer is missing', { line: 3 }]);
      return true;
    });
  }));

test('an address without a service fails at once as unreachable, with the address and what to do', async () => {
  const service = await FakeService.open();
  const { url } = service;
  await service.stop();
  await using client = openClient({ url, timeoutMs: 60_000 });
  await assert.rejects(client.get('x'), {
    code: 'unreachable',
    message: new RegExp(`^no service at ${url} \\(.*ECONNREFUSED.*\\): start it with .millrace serve., or check the address$`),
  });
});

test('a reply that is not from Millrace names the address, the status and what it said', () =>
  withBoth(async (service, client) => {
    service.fault = (_request, response) => response.writeHead(404).end('<h1>nginx</h1>') !== undefined;
    await assert.rejects(client.status(), {
      code: 'internal',
      message: /GET http:.*\/v1\/status returned 404: <h1>nginx<\/h1>; is http:\S+ the address of a Mill/,
    });
    service.fault = (_request, response) => response.end('{"rollouts":') !== undefined;
    await assert.rejects(client.status(), { code: 'internal', message: /cannot read/ });
  }));

test('an invalid address is refused when the client is opened', () => {
  assert.throws(() => openClient({ url: 'localhost:80' }), { code: 'bad-request' });
});

test('the key is sent as a bearer token', async () => {
  await using service = await FakeService.open();
  await using client = openClient({ url: service.url, key: 'secret' });
  let seen: string | undefined;
  service.fault = (request) => {
    seen = request.headers.authorization;
    return false;
  };
  await client.status();
  assert.equal(seen, 'Bearer secret');
});

test('waiting survives a restart of the service', () =>
  withBoth(async (service, client) => {
    service.add('r1');
    const { port } = service;
    const waited = client.wait('r1');
    while (!service.requests.some((line) => line.includes('wait='))) await new Promise(setImmediate);
    await service.stop();
    await service.start(port);
    service.end('r1', { reward: 0.5 });
    assert.equal((await waited).reward, 0.5);
  }));

test('a service that stays down is given up after the timeout', async () => {
  await using service = await FakeService.open();
  await using client = openClient({ url: service.url, timeoutMs: 150 });
  service.fault = (request) => request.socket.destroy() !== undefined;
  await assert.rejects(client.wait('r1'), { code: 'unreachable', message: /no reply to GET http/ });
  assert.ok(service.requests.length > 1, 'it was tried again');
});

test('events of an address without a service fail at once', async () => {
  const service = await FakeService.open();
  const { url } = service;
  await service.stop();
  await using client = openClient({ url, timeoutMs: 60_000 });
  await assert.rejects(client.events({ after: 0 })[Symbol.asyncIterator]().next(), { code: 'unreachable' });
});

test('a proxy whose service is down is retried, and unreachable if it stays down', () =>
  withBoth(async (service, client) => {
    service.add('r1');
    let failures = 0;
    service.fault = (_request, response) => failures++ < 2 && response.writeHead(502).end('<html>') !== undefined;
    assert.equal((await client.get('r1')).id, 'r1');
    service.fault = (_request, response) => response.writeHead(503).end('<html>') !== undefined;
    await using hasty = openClient({ url: service.url, timeoutMs: 1 });
    await assert.rejects(hasty.get('r1'), { code: 'unreachable' });
  }));

test('a call on a closed client fails at once', async () => {
  await using service = await FakeService.open();
  const client = openClient({ url: service.url });
  await client.status();
  await client[Symbol.asyncDispose]();
  await assert.rejects(client.status(), { code: 'cancelled', message: 'the client is closed' });
});
