// A call waits for a slow server while that server is healthy, and fails soon after the server has died.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import { backendId, type Dialect, RolloutError, sampling } from '@millrace/protocol';
import { FakeClock, openFakeBackend } from '@millrace/testkit';
import type { BackendRecord, GenerateRequest } from '../../src/backend.ts';
import { openBackend } from '../../src/open-backend.ts';
import { openServer } from '../open-server.ts';

const quiet = { log: silentLog, pace: new Pace() };
const minute = 60_000;
const dialects: readonly Dialect[] = ['vllm', 'vllm-completions', 'sglang', 'llamacpp'];

function makeRecord(url: string, dialect: Dialect): BackendRecord {
  return { id: backendId.parse('b1'), url, dialect, policyVersion: 1, state: 'up' };
}

function makeRequest(changes: Partial<GenerateRequest> = {}): GenerateRequest {
  const signal = new AbortController().signal;
  const base = { promptJson: Buffer.from('1,2,3'), promptTokens: 3, sampling: sampling.parse({}), maxTokens: 32_768, stopTokenIds: [9] };
  return { ...base, sessionId: 's', requestId: 'r', signal, ...changes };
}

/** Lets the sockets work while the clock stands still. */
const settle = () => new Promise((resolve) => setTimeout(resolve, 20));

async function pass(clock: FakeClock, ms: number, stepMs = 5000): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    clock.advance(stepMs);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await settle();
}

for (const dialect of dialects) {
  test(`${dialect}: a turn of 13 minutes on a healthy server is returned`, async () => {
    const clock = new FakeClock();
    const { promise: done, resolve: answer } = Promise.withResolvers<void>();
    await using fake = await openFakeBackend({ policy: () => ({ text: 'late' }) });
    const { promise: asked, resolve: noteAsked } = Promise.withResolvers<void>();
    // In front of the fake: the reply is held back until its time has come.
    await using proxy = await openServer(async (request, response) => {
      const body = await Array.fromAsync(request).then((chunks) => Buffer.concat(chunks as Buffer[]));
      if (request.method === 'POST') {
        noteAsked();
        await done;
      }
      const init = request.method === 'POST' ? { method: 'POST', body, headers: { 'content-type': 'application/json' } } : {};
      const reply = await fetch(`${fake.url}${request.url}`, init);
      response.writeHead(reply.status, { 'content-type': reply.headers.get('content-type') ?? 'text/plain' });
      response.end(await reply.text());
    });
    const backend = openBackend(makeRecord(proxy.url, dialect), { ...quiet, clock, stallMs: 10 * minute, tokenMs: 250 });
    const call = backend.generate(makeRequest());
    await asked;
    await pass(clock, 13 * minute);
    answer();
    assert.equal((await call).finishReason, 'stop');
  });

  test(`${dialect}: a server that accepts connections and answers nothing is noticed within two minutes`, async () => {
    const clock = new FakeClock();
    await using server = await openServer(() => {});
    const backend = openBackend(makeRecord(server.url, dialect), { ...quiet, clock, stallMs: 10 * minute, tokenMs: 250 });
    const call = backend.generate(makeRequest());
    const failed = assert.rejects(call, (error) => {
      assert.ok(error instanceof RolloutError && error.code === 'backend-failed' && error.details?.reason === 'silence', String(error));
      return /nothing came for \d+ s, and GET \/health was not answered within 25 s/.test(error.message);
    });
    await settle();
    await pass(clock, 2 * minute);
    await failed;
  });
}

test('a call to a healthy server that hangs fails after its limit, which grows with the tokens that it asks for', async () => {
  const clock = new FakeClock();
  await using server = await openServer((request, response) => void (request.method === 'GET' && response.writeHead(200).end()));
  const backend = openBackend(makeRecord(server.url, 'sglang'), { ...quiet, clock, stallMs: minute, tokenMs: 1000 });
  let ended = 0;
  const failed = assert
    .rejects(backend.generate(makeRequest({ maxTokens: 120 })), /nothing came for 180 s/)
    .finally(() => (ended = clock.monotonic()));
  await settle();
  for (let i = 0; i < 40 && ended === 0; i++) await pass(clock, 5000);
  await failed;
  assert.ok(ended >= 3 * minute && ended <= 3 * minute + 10_000, `ended at ${ended} ms`);
});

test('a health check that fails once ends no call', async () => {
  const clock = new FakeClock();
  let checks = 0;
  await using server = await openServer((request, response) => {
    if (request.method === 'GET') response.writeHead(++checks % 2 === 0 ? 200 : 503).end();
  });
  const backend = openBackend(makeRecord(server.url, 'llamacpp'), { ...quiet, clock, stallMs: 10 * minute, tokenMs: 250 });
  const stop = new AbortController();
  const call = assert.rejects(backend.generate(makeRequest({ signal: stop.signal })), /enough/);
  await settle();
  for (let i = 0; i < 12; i++) await pass(clock, 10_000);
  stop.abort(new Error('enough'));
  await call;
  assert.ok(checks >= 4, `${checks} checks`);
});

for (const dialect of dialects) {
  test(`${dialect}: a reply that takes longer than stallMs is returned if its tokens may take that long`, async () => {
    await using fake = await openFakeBackend({ policy: () => ({ text: 'late' }), latencyMs: 1500 });
    const backend = openBackend(makeRecord(fake.url, dialect), { ...quiet, stallMs: 50, tokenMs: 250 });
    assert.equal((await backend.generate(makeRequest({ maxTokens: 100 }))).finishReason, 'stop');
  });
}
