// Calls of many workers that wait at the same moment: those that run as a few statements for all change what they would change one by one,
// and whatever needs more than the usual case does the same as alone.

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { type GroupId, groupId, workerId } from '@millrace/protocol';
import {
  makeBatch,
  makeFailure,
  makeGroup,
  makeResult,
  makeRollout,
  makeTrajectory,
  PostgresServer,
  skipPostgres,
  toBatch,
} from '@millrace/testkit';
import type { Claim } from '../../../src/claim.ts';
import { chooseRows } from '../../../src/postgres/calls/choose-rows.ts';
import type { Store } from '../../../src/store.ts';
import { openPostgresBed } from '../bed.ts';

const leaseMs = 60_000;
const roomy = { maxQueued: 1_000 };
const hosts = ['a', 'b', 'c'];

describe('calls of many workers together', { skip: skipPostgres }, () => {
  let opening: Promise<PostgresServer> | undefined;
  after(async () => (await opening)?.[Symbol.asyncDispose]());

  async function open(rollouts: number) {
    opening ??= PostgresServer.open();
    const bed = await openPostgresBed(await opening);
    const { store } = bed;
    const workers = hosts.map((host) => workerId.parse(`w-${host}`));
    for (const [index, id] of workers.entries()) await store.registerWorker({ id, host: hosts[index] ?? '', pid: 1 }, { leaseMs });
    const some = Array.from({ length: rollouts }, (_, index) =>
      makeRollout(`r${String(index).padStart(2, '0')}`, { group: `g${index % 3}` }),
    );
    if (rollouts > 0) await store.submit(some, roomy);
    return { bed, store, workers };
  }

  const eachOf = async <T>(claims: readonly Claim[], call: (claim: Claim, index: number) => Promise<T>) =>
    await Promise.all(claims.map(call));

  test('claims: every rollout goes out once, and a dead worker gets nothing', async () => {
    const { bed, store, workers } = await open(12);
    await using _bed = bed;
    await store.dropWorker(workers[2] ?? workerId.parse('none'), { maxLosses: 9 });
    const claimed = await Promise.all(workers.map((worker) => store.claim(worker, 4)));
    assert.deepEqual(
      claimed.map((some) => some.length),
      [4, 4, 0],
    );
    assert.equal(new Set(claimed.flat().map(({ id }) => id)).size, 8);
    assert.ok(claimed.flat().every(({ attempt, submission }) => attempt === 1 && submission.group !== undefined));
    const rest = await Promise.all(
      [workers[0], workers[1], workers[0], workers[1]].map((worker) => (worker ? store.claim(worker, 2) : [])),
    );
    assert.deepEqual(rest.map((some) => some.length).sort(), [0, 0, 2, 2], 'no slot stays empty while there is work');
    assert.deepEqual(await store.counts(), { ...(await store.counts()), queued: 0, init: 12 });
    assert.equal((await store.classes())[0]?.active, 12);
  });

  test('ends: fenced ones are false, siblings of a batch count as waste, and one after a lost stage is refused alone', async () => {
    const { bed, store, workers } = await open(4);
    await using _bed = bed;
    await store.createBatch(makeBatch('batch', { target: 1, count: 4 }));
    await store.beginGroup(makeGroup('batch', 0));
    const claims = (await Promise.all(workers.map((worker) => store.claim(worker, 9)))).flat();
    await eachOf(claims, async (claim) => {
      for (const to of ['ready', 'run', 'evaluate'] as const) await store.move(claim, to);
    });
    const [first, second, third, ...others] = claims;
    assert.ok(first && second && third && others.length > 2);
    await store.retry(second, makeFailure('backend-failed', 1), { delayMs: 0 });
    await store.release(third);
    const [again] = await store.claim(third.worker, 1);
    assert.ok(again);
    const end = (claim: Claim) =>
      store.finish(claim, { state: 'done', result: makeResult(0.5), trajectory: makeTrajectory(claim.id, claim.attempt) });
    const replies = await Promise.allSettled([
      end(first),
      end(first),
      end(second),
      end(again),
      ...others.map((claim) => fail(store, claim)),
    ]);
    const [one, other, ...rest] = replies.map((reply) => (reply.status === 'fulfilled' ? reply.value : 'refused'));
    assert.deepEqual([one, other].toSorted(), [false, true], 'of two that end the same attempt, one does');
    assert.deepEqual(rest, [false, 'refused', ...others.map(() => true)]);
    assert.deepEqual((await store.trajectory(first.id))?.segments, makeTrajectory(first.id, 1).segments);
    const failed = await Promise.all(others.map(({ id }) => store.get(id)));
    assert.ok(failed.every((record) => record?.failure?.code === 'task-failed' && record.worker === undefined));
    const siblings = others.filter((_, index) => failed[index]?.submission.group === groupOf('batch:0')).length;
    assert.equal((await store.batch(toBatch('batch')))?.wasted.failed.rollouts, siblings);
    await bed.settleLog();
    const { events } = await store.events(0, { limit: 1_000, kinds: ['rollout-end'] });
    assert.equal(events.length, 1 + others.length);
    assert.equal(events.find(({ rollout_id: id }) => id === first.id)?.data.reward, 0.5);
  });

  test('turns: the logs, contexts and events of several workers, without what a worker does not run', async () => {
    const { bed, store, workers } = await open(6);
    await using _bed = bed;
    const claims = (await Promise.all(workers.map((worker) => store.claim(worker, 2)))).flat();
    await eachOf(claims, async (claim) => {
      for (const to of ['ready', 'run'] as const) await store.move(claim, to);
    });
    const body = Uint8Array.of(1, 2, 3);
    const append = (claim: Claim, attempt = 1) => ({ id: claim.id, attempt, after: 0, turns: [{ turn: 1, body }] });
    const of = (worker: string) => claims.filter((claim) => claim.worker === worker);
    const written = await Promise.all([
      ...workers.map((worker) =>
        store.appendTurns(worker, [...of(worker).map((claim) => append(claim)), ...claims.map((one) => append(one, 2))]),
      ),
      ...claims.map((claim) => store.noteTraffic({ contexts: [{ claim, tokens: 100 }], errors: [] })),
      ...claims.map((claim) => store.appendEvents([{ kind: 'turn-end', rolloutId: claim.id, data: {} }])),
    ]);
    assert.deepEqual(
      written.slice(0, 3),
      workers.map((worker) => of(worker).map(({ id }) => id)),
    );
    for (const claim of claims) assert.deepEqual([...((await store.loggedTurns(claim))[0]?.body ?? [])], [1, 2, 3]);
    await bed.settleLog();
    assert.equal((await store.events(0, { limit: 100, kinds: ['turn-end'] })).events.length, claims.length);
  });
});

async function fail(store: Store, claim: Claim): Promise<boolean> {
  return await store.finish(claim, { state: 'failed', failure: makeFailure('task-failed', claim.attempt) });
}

function groupOf(id: string): GroupId {
  return groupId.parse(id);
}

test('rows are chosen by how long they waited, where their siblings run, and age; what was overtaken is named once', () => {
  const row = (seq: number, group: string | null, hosts: string[] | null = null, passed: number | null = null) => ({
    ...{ seq, group_id: group === null ? null : groupOf(group), passed_at: passed, hosts },
  });
  const head = [row(1, 'g', ['b']), row(2, 'h'), row(3, 'g', ['b'], 5), row(4, 'h'), row(5, null)];
  const { chosen, passed } = chooseRows(head, { demands: ['a', 'b', 'a', 'a'].map((host) => ({ host })), passedAt: 5 });
  assert.deepEqual(
    chosen.map(({ seq, claimer }) => [seq, claimer.host]),
    [
      [3, 'a'],
      [1, 'b'],
      [2, 'a'],
      [4, 'a'],
    ],
  );
  assert.deepEqual(passed, []);
  assert.deepEqual(chooseRows(head, { demands: [{ host: 'c' }], passedAt: 4 }).passed, [1]);
});
