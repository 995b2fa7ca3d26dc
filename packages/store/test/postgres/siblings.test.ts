// Where siblings run, with workers on two machines and a clock that the test controls: a machine prefers groups that it has, and leaves
// those of others to them, but not for longer than the bound.

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { type WorkerId, workerId } from '@millrace/protocol';
import { FakeClock, makeRollout, PostgresServer, skipPostgres } from '@millrace/testkit';
import { longestPassMs } from '../../src/claim.ts';
import type { Store } from '../../src/store.ts';
import { openPostgresBed } from './bed.ts';

const leaseMs = 600_000;

describe('siblings on several machines', { skip: skipPostgres }, () => {
  let opening: Promise<PostgresServer> | undefined;
  after(async () => (await opening)?.[Symbol.asyncDispose]());

  /** `groups` groups of four siblings, queued in this order, and a worker on each host. */
  async function openGroups(groups: number, hosts: readonly string[]) {
    opening ??= PostgresServer.open();
    const clock = new FakeClock();
    const bed = await openPostgresBed(await opening, clock);
    const { store } = bed;
    for (let group = 0; group < groups; group += 1) await submitGroup(store, `g${group}`);
    const workers: WorkerId[] = [];
    for (const [index, host] of hosts.entries()) {
      const id = workerId.parse(`w${index}`);
      await store.registerWorker({ id, host, pid: 1 }, { leaseMs });
      workers.push(id);
    }
    const [a, b] = workers as [WorkerId, WorkerId];
    const claim = async (worker: WorkerId, count: number) => (await store.claim(worker, count)).map(({ id }) => id);
    return { clock, store, a, b, claim, [Symbol.asyncDispose]: () => bed[Symbol.asyncDispose]() };
  }

  test('a group goes to one machine, however much each claims at a time', async () => {
    await using bed = await openGroups(4, ['a', 'b']);
    assert.deepEqual(await bed.claim(bed.a, 2), ['g0:0', 'g0:1']);
    assert.deepEqual(await bed.claim(bed.b, 3), ['g1:0', 'g1:1', 'g1:2'], 'the siblings of g0 are left to the other machine');
    assert.deepEqual(await bed.claim(bed.a, 3), ['g0:2', 'g0:3', 'g2:0']);
    assert.deepEqual(await bed.claim(bed.b, 2), ['g1:3', 'g3:0']);
    assert.deepEqual(await bed.claim(bed.b, 9), ['g3:1', 'g3:2', 'g3:3', 'g2:1', 'g2:2', 'g2:3'], 'no slot stays empty for it');
  });

  test('a rollout that was passed over for long is the next, also for another machine', async () => {
    await using bed = await openGroups(40, ['a', 'b']);
    await bed.claim(bed.a, 1);
    assert.deepEqual(await bed.claim(bed.b, 1), ['g1:0'], 'g0 is passed over from now on');
    bed.clock.advance(longestPassMs - 1);
    assert.deepEqual(await bed.claim(bed.b, 1), ['g1:1']);
    bed.clock.advance(1);
    assert.deepEqual(await bed.claim(bed.b, 4), ['g0:1', 'g0:2', 'g0:3', 'g1:2']);
  });

  test('without an end of other work, no rollout is passed over for longer than the bound', async () => {
    await using bed = await openGroups(2, ['a', 'b']);
    await bed.claim(bed.a, 1);
    const stepMs = 500;
    const taken = new Map<string, number>();
    for (let step = 0; taken.size < 7 && step < 100; step += 1) {
      await submitGroup(bed.store, `more-${step}`);
      for (const id of await bed.claim(bed.b, 1)) if (/^g\d/.test(id)) taken.set(id, step * stepMs);
      bed.clock.advance(stepMs);
    }
    const last = Math.max(...['g0:1', 'g0:2', 'g0:3'].map((id) => taken.get(id) ?? Number.POSITIVE_INFINITY));
    assert.ok(last <= longestPassMs + 4 * stepMs, `the last sibling was taken after ${last} ms`);
  });

  test('with all workers on one machine, the oldest goes first', async () => {
    await using bed = await openGroups(3, ['a', 'a']);
    assert.deepEqual(await bed.claim(bed.a, 2), ['g0:0', 'g0:1']);
    assert.deepEqual(await bed.claim(bed.b, 3), ['g0:2', 'g0:3', 'g1:0']);
  });

  test('workers of several machines that claim at the same moment take every rollout once', async () => {
    await using bed = await openGroups(40, ['a', 'b']);
    const claims = await Promise.all(Array.from({ length: 80 }, (_, index) => bed.claim(index % 2 === 0 ? bed.a : bed.b, 2)));
    assert.equal(new Set(claims.flat()).size, 160);
    assert.equal(claims.flat().length, 160);
  });
});

async function submitGroup(store: Store, group: string): Promise<void> {
  const rollouts = Array.from({ length: 4 }, (_, index) => makeRollout(`${group}:${index}`, { group }));
  await store.submit(rollouts, { maxQueued: 100_000 });
}
