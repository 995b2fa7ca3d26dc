// The store's promises about which server answers at a backend's address: another one is another one for all workers, and nothing is assumed
// of it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type BackendId, backendId, groupId } from '@millrace/protocol';
import type { Claim, Store } from '@millrace/store';
import { moveUpTo, type OpenBed, openTimedBed, registerWorker, submitAll } from '../bed/bed.ts';

export function defineServerIdentityTests(openBed: OpenBed): void {
  test('a server that differs is another one: an event says how, and a join of the same server does not count', async () => {
    await using bed = await openTimedBed(openBed);
    await join(bed.store, 'a');
    const id = toId('a');
    const old = { instance: '1', version: '0.27.1', logprobsMode: 'processed', atMs: 1 } as const;
    const known = await bed.store.noteProbe(id, old);
    assert.deepEqual(known, { ...old, generation: 1, startVersion: 0, provenVersion: 0 });
    assert.deepEqual(await bed.store.noteProbe(id, { ...old, atMs: 2 }), { ...known, atMs: 2 });
    const before = await bed.store.lastEventId();
    const found = { instance: '2', version: '0.32.0', logprobsMode: 'raw', contextTokens: 9, atMs: 3 } as const;
    const changed = await bed.store.noteProbe(id, found);
    assert.equal(changed?.generation, 2);
    assert.equal(changed?.logprobsMode, 'raw');
    assert.equal((await bed.store.noteProbe(id, found))?.generation, 2, 'another worker finds the same');
    const { events } = await bed.store.events(before, { limit: 9 });
    const from = { instance: '1', version: '0.27.1', logprobs_mode: 'processed' };
    const to = { instance: '2', version: '0.32.0', logprobs_mode: 'raw' };
    assert.deepEqual(
      events.map(({ kind, data }) => [kind, data]),
      [['backend-changed', { generation: 2, from, to, weights: 'known' }]],
    );
    await bed.store.joinBackend({ ...makeBackend('a'), probe: found });
    assert.equal((await bed.store.backends())[0]?.probe?.generation, 2);
    await bed.store.joinBackend({ ...makeBackend('a'), probe: old });
    assert.equal((await bed.store.backends())[0]?.probe?.generation, 3);
  });

  test('the weights of a server that is restarted after new ones are unknown: it is broken until a resume names them', async () => {
    await using bed = await openTimedBed(openBed);
    await join(bed.store, 'a');
    const id = toId('a');
    const [server = assert.fail(), again, third] = ['1', '2', '3'].map((instance) => ({ instance, atMs: 1 }));
    assert.ok(again && third);
    const isBroken = async () => (await bed.store.backends())[0]?.health?.brokenAtMs !== undefined;
    const load = async (policyVersion: number) => {
      await bed.store.pausePolicy({ mode: 'wait' });
      await bed.store.resumePolicy({ policyVersion, cachesFlushed: true });
    };
    await bed.store.noteProbe(id, server);
    await load(1);
    await bed.store.noteProbe(id, { provenVersion: 1 });
    assert.equal((await bed.store.noteProbe(id, again))?.hasUnknownWeights, true);
    assert.ok(await isBroken());
    await load(2);
    assert.ok(!(await isBroken()));
    const stated = await bed.store.noteProbe(id, third);
    assert.ok(!stated?.hasUnknownWeights, 'it was restarted before the resume that named its weights');
    assert.ok(!(await isBroken()));
  });

  test('a server with another model has unknown weights, and one with the weights that it joined with has not', async () => {
    await using bed = await openTimedBed(openBed);
    await join(bed.store, 'a', 'b');
    for (const [name, model] of [
      ['a', 'm'],
      ['b', 'n'],
    ] as const) {
      await bed.store.noteProbe(toId(name), { instance: '1', model: 'm', atMs: 1 });
      await bed.store.noteProbe(toId(name), { instance: '2', model, atMs: 2 });
    }
    const broken = (await bed.store.backends()).filter(({ health }) => health?.brokenAtMs !== undefined);
    assert.deepEqual(
      broken.map(({ id, health }) => [id, /which weights/.test(health?.error ?? '')]),
      [['b', true]],
    );
  });

  test('a server with another tokenizer than the service is broken for all', async () => {
    await using bed = await openTimedBed(openBed);
    await join(bed.store, 'a');
    await bed.store.noteProbe(toId('a'), { instance: '1', tokenizer: 'same', atMs: 1 });
    await bed.store.noteProbe(toId('a'), { instance: '2', tokenizer: 'different', tokenizerReason: 'it encodes "a" as [1]', atMs: 2 });
    const [{ health } = assert.fail()] = await bed.store.backends();
    assert.ok(health?.brokenAtMs !== undefined);
    assert.equal(health.error, 'it encodes "a" as [1]');
  });

  test('siblings are not sent after the cache of a server that was restarted', async () => {
    await using bed = await openTimedBed(openBed);
    await join(bed.store, 'a', 'b');
    const group = groupId.parse('g');
    const claims = await runAll(bed.store, ['x', 'y', 'z'], { group });
    const [x, y, z] = claims;
    assert.ok(x && y && z);
    await bed.store.noteProbe(toId('b'), { instance: '1', atMs: 1 });
    assert.equal(await bed.store.place(x, { exclude: [toId('a')] }), 'b');
    await bed.store.move(x, 'evaluate');
    assert.equal(await bed.store.place(y, {}), 'b', 'where its sibling left the prompt');
    await bed.store.release(y);
    await bed.store.noteProbe(toId('b'), { instance: '2', atMs: 2 });
    assert.equal(await bed.store.place(z, {}), 'a');
  });
}

async function runAll(store: Store, ids: readonly string[], changes: Record<string, unknown> = {}): Promise<readonly Claim[]> {
  await submitAll(store, ids, changes);
  const claims = await store.claim(await registerWorker(store, 'w'), ids.length);
  for (const claim of claims) await moveUpTo(store, claim, 'run');
  return claims;
}

async function join(store: Store, ...ids: readonly string[]): Promise<void> {
  for (const id of ids) await store.joinBackend(makeBackend(id));
}

function makeBackend(id: string) {
  return { id: toId(id), url: `http://${id}`, dialect: 'vllm', policyVersion: 0, state: 'up' } as const;
}

function toId(id: string): BackendId {
  return backendId.parse(id);
}
