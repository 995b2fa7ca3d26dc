// Draining and closing, and the event loop under load.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { measureLoopBlock } from '@millrace/testkit';
import { errorOf, openFloor, task } from './floor.ts';

test('after a drain, submissions get 503 with Retry-After, reads continue, and waiting requests return immediately', async () => {
  await using floor = await openFloor();
  await floor.worker.register();
  const id = await floor.submit();
  const address = await floor.listen();
  const [events] = await once(get(`${address}/v1/events`), 'response');
  const polls = Array.from({ length: 20 }, () => fetch(`${address}/v1/rollouts/${id}?wait=60`));
  await fetch(`${address}/healthz`);
  floor.app.drain();
  await text(events);
  for (const poll of await Promise.all(polls)) assert.equal(Reflect.get(Object(await poll.json()), 'state'), 'queued');

  const refused = await floor.call('POST', '/v1/rollouts', { rollouts: [{ scenario: 'sums', task }] });
  assert.deepEqual([refused.status, refused.headers['retry-after'], errorOf(refused).code], [503, '5', 'not-running']);
  assert.equal((await floor.call('GET', '/v1/events')).status, 503);
  assert.equal((await floor.call('GET', `/v1/rollouts/${id}?wait=60`)).body.state, 'queued');
  assert.deepEqual(errorOf(await floor.call('GET', '/readyz')).details?.missing, ['the service is shutting down']);
  await floor.app.close();
});

test('close does not wait for long polls', async () => {
  await using floor = await openFloor();
  await floor.call('POST', '/start');
  await floor.call('POST', '/add_llm_server', { address: '127.0.0.1:2' });
  const id = await floor.submit();
  const address = await floor.listen();
  const [events] = await once(get(`${address}/v1/events?after=0`), 'response');
  events.resume();
  const body = JSON.stringify({ instance: { data_source: 'sums', ...task }, sampling_params: {} });
  const waiting = [
    fetch(`${address}/v1/rollouts/${id}?wait=60`),
    fetch(`${address}/process`, { method: 'POST', body, headers: { 'content-type': 'application/json' } }),
  ];
  while ((await floor.store.counts()).queued < 2) await fetch(`${address}/healthz`);
  const start = performance.now();
  await floor.app.close();
  assert.ok(performance.now() - start < 30_000, 'long before the wait ends');
  assert.deepEqual(
    (await Promise.all(waiting)).map((reply) => reply.status),
    [200, 503],
  );
  assert.equal((await floor.store.counts()).cancelled, 1, 'a /process call without a response leaves nothing running');
});

test('ten thousand rollouts in one submission and hundreds of long polls do not block the event loop', async (t) => {
  await using floor = await openFloor();
  await floor.worker.register();
  const rollouts = Array.from({ length: 10_000 }, (_, index) => ({ id: `r${index}`, scenario: 'sums', task, group: `g${index % 8}` }));
  const payload = JSON.stringify({ rollouts });
  const headers = { 'content-type': 'application/json' };
  const submitting = await measureLoopBlock(async () => {
    const submitted = await floor.app.inject({ method: 'POST', url: '/v1/rollouts', payload, headers });
    assert.equal(submitted.statusCode, 200);
  });
  const waiting = await measureLoopBlock(async () => {
    const polls = Array.from({ length: 500 }, (_, index) => floor.call('GET', `/v1/rollouts/r${index}?wait=60`));
    const looks = Array.from({ length: 200 }, () => floor.call('GET', '/v1/status'));
    const claims = await floor.store.claim(floor.worker.id, 500);
    await Promise.all(claims.map((claim) => floor.store.finish(claim, { state: 'cancelled' })));
    await Promise.all([...polls, ...looks]);
  });
  t.diagnostic(`longest turn of the loop: ${submitting.toFixed(0)} ms while submitting, ${waiting.toFixed(0)} ms while waiting`);
  assert.ok(submitting < 250 && waiting < 250);
});
