// Where rollouts wait for a cache: who is woken, when, and what is left of those that stop waiting.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { backendId } from '@millrace/protocol';
import { FakeClock } from '@millrace/testkit';
import { CacheGate } from '../../../src/inference/cache/cache-gate.ts';
import { CacheGates } from '../../../src/inference/cache/cache-gates.ts';

const never = new AbortController().signal;

/** Names of those that go, in their order. */
function openGate(capacityTokens = 100) {
  const clock = new FakeClock();
  const gate = new CacheGate(clock, capacityTokens);
  const gone: string[] = [];
  const enter = (id: string, tokens: number, signal = never) => {
    const wait = gate.enter({ id, rank: Number(id.slice(1)), tokens }, signal);
    if (wait) void wait.then(() => gone.push(id)).catch(() => undefined);
    else gone.push(id);
  };
  return { clock, gate, gone, enter };
}

test('a member is not held up by those that wait, and nothing is decided for it', () => {
  const { gate, gone, enter } = openGate();
  enter('r2', 90);
  enter('r1', 50);
  for (let turn = 0; turn < 3; turn += 1) {
    gate.endCall({ id: 'r2', tokens: 90 });
    enter('r2', 91);
  }
  assert.deepEqual(gone, ['r2', 'r2', 'r2', 'r2']);
});

test('however many turns end at once, those that wait are decided on at most once in a while, and soon', async () => {
  const { clock, gate, gone, enter } = openGate();
  for (const id of ['r1', 'r2']) enter(id, 50);
  for (const id of ['r3', 'r4']) enter(id, 50);
  gate.leave('r1');
  gate.leave('r2');
  await setImmediate();
  assert.deepEqual(gone, ['r1', 'r2'], 'it was decided when the third came');
  clock.advance(50);
  await setImmediate();
  assert.deepEqual(gone, ['r1', 'r2', 'r3', 'r4']);
});

test('a tool that takes too long makes room without any other event', async () => {
  const { clock, gate, gone, enter } = openGate();
  enter('r1', 90);
  gate.endCall({ id: 'r1', tokens: 90 });
  enter('r2', 5);
  enter('r3', 50);
  clock.advance(600_000);
  await setImmediate();
  assert.deepEqual(gone, ['r1', 'r2']);
  clock.advance(2000);
  await setImmediate();
  assert.deepEqual(gone, ['r1', 'r2', 'r3']);
});

test('a signal that has aborted before a rollout waits leaves nothing behind', async () => {
  const { gate, gone, enter } = openGate();
  enter('r1', 90);
  enter('r2', 90, AbortSignal.abort(new Error('cancelled')));
  await setImmediate();
  assert.deepEqual(gone, ['r1']);
  assert.deepEqual([gate.view.held, gate.view.contextTokens], [0, 90]);
});

test('a gate without waiting rollouts has no timer, so nothing keeps a worker that stops', async () => {
  const { clock, gate, enter } = openGate();
  const cancel = new AbortController();
  enter('r1', 90);
  enter('r2', 90, cancel.signal);
  assert.equal(clock.timers, 1);
  cancel.abort(new Error('the worker stops'));
  await setImmediate();
  assert.equal(clock.timers, 0);
  enter('r3', 90);
  gate.releaseAll();
  assert.equal(clock.timers, 0);
});

test('what the caches of an engine keep counts over its ranks, and each backend is divided for itself', () => {
  const gates = new CacheGates(new FakeClock());
  const records = ['a', 'b'].map((id) => {
    const probe = { cacheTokens: 100, ranks: 2 };
    return { id: backendId.parse(id), url: '', dialect: 'vllm', policyVersion: 0, state: 'up', probe } as const;
  });
  const [a, b] = records.map((record) => gates.find(record, 1));
  a?.enter({ id: 'r1', rank: 1, tokens: 50 }, never);
  b?.enter({ id: 'r2', rank: 2, tokens: 50 }, never);
  const find = (tokens: number) => {
    const loads = new Map(records.map(({ id }) => [id, { inFlight: 9, tokens }]));
    const [first, second] = records.map((record) => ({ id: record.id, record, leases: record.id === 'a' ? 1 : 9 }));
    const unused = records.map((record) => ({ id: backendId.parse('other'), record, leases: 0 }));
    return first && second ? gates.findShared([first, second, ...unused], loads) : [];
  };
  assert.deepEqual([find(200), find(201)], [[], [{ id: 'a', tokens: 200 }]]);
  gates.divide([{ id: backendId.parse('a'), rollouts: ['r1'] }]);
  assert.deepEqual([a?.view.usableTokens, b?.view.usableTokens], [50, 100]);
});
