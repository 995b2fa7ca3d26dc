// What one writer of SQLite gives for free, PostgreSQL has to keep with locks: these tests let several processes' worth of stores change
// the same rows at the same time.

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { backendId, rolloutId, workerId } from '@millrace/protocol';
import {
  makeBatch,
  makeGroup,
  makeReport,
  makeRollout,
  makeTrajectory,
  PostgresServer,
  skipPostgres,
  toBatch,
  toGroup,
} from '@millrace/testkit';
import pg from 'pg';
import { toWorkChannel } from '../../src/postgres/engine/postgres-transaction.ts';
import { openPostgresStore } from '../../src/postgres/postgres.ts';
import type { ClaimedRollout, Store } from '../../src/store.ts';
import { openPostgresBed } from './bed.ts';
import { openLogTransaction, schemaOf } from './log-transaction.ts';

const leaseMs = 60_000;
const roomy = { maxQueued: 100_000 };
const makeId = (id: string) => rolloutId.parse(id);

describe('stores that share a PostgreSQL database', { skip: skipPostgres }, () => {
  let opening: Promise<PostgresServer> | undefined;
  after(async () => (await opening)?.[Symbol.asyncDispose]());

  const openStores = async (count: number) => {
    opening ??= PostgresServer.open();
    const server = await opening;
    const bed = await openPostgresBed(server);
    const stores = [bed.store, ...(await Promise.all(Array.from({ length: count - 1 }, () => bed.another())))];
    return { server, bed, stores, store: bed.store, [Symbol.asyncDispose]: () => bed[Symbol.asyncDispose]() };
  };
  const register = async (store: Store, name: string) => {
    const id = workerId.parse(name);
    await store.registerWorker({ id, host: 'host', pid: 1 }, { leaseMs });
    return id;
  };

  test('a reader of the log misses no event, although a transaction that wrote first commits last', async () => {
    await using opened = await openStores(2);
    const { address } = opened.bed;
    await using reader = await openPostgresStore({ address, clock: systemClock, log: silentLog, hints: 'work' });
    await using early = await openLogTransaction(address);
    await early.append('early');
    for (const store of opened.stores) await store.appendEvents([{ kind: 'turn-end', data: { name: 'late' } }]);
    const before = await reader.events(0, { limit: 10 });
    await early.commit();
    await opened.bed.settleLog();
    const rest = await reader.events(before.last, { limit: 10 });
    const seen = [...before.events, ...rest.events];
    assert.deepEqual(
      [seen.map(({ id }) => id), seen.map(({ data }) => data.name).toSorted()],
      [
        [1, 2, 3],
        ['early', 'late', 'late'],
      ],
    );
  });

  test('a reader that follows many writers sees every event once and in order', async () => {
    await using opened = await openStores(5);
    const [reader, ...writers] = opened.stores as [Store, ...Store[]];
    const seen: number[] = [];
    let isWriting = true;
    const follow = async () => {
      for (let at = 0; ; ) {
        const wasWriting = isWriting;
        const { events, last } = await reader.events(at, { limit: 1_000, kinds: ['turn-end'] });
        seen.push(...events.map(({ id }) => id));
        at = last;
        if (!wasWriting && events.length === 0) return;
      }
    };
    const following = follow();
    const write = async (writer: Store, from: number) => {
      for (let round = 0; round < 25; round += 1) {
        const count = 1 + ((7 * round + from) % 20);
        await writer.appendEvents(Array.from({ length: count }, () => ({ kind: 'turn-end', data: { filler: 'x'.repeat(50 * count) } })));
      }
    };
    await Promise.all(writers.map(write));
    isWriting = false;
    await following;
    const { events } = await reader.events(0, { limit: 100_000, kinds: ['turn-end'] });
    assert.deepEqual(
      seen,
      events.map(({ id }) => id),
    );
    assert.equal(events.length, (await reader.lastEventId()) - (events[0]?.id ?? 1) + 1);
  });

  test('workers that claim at the same time share the queue: every rollout goes to one of them', async () => {
    await using opened = await openStores(6);
    const { store, stores } = opened;
    const ids = Array.from({ length: 120 }, (_, index) => `r${index}`);
    await store.submit(
      ids.map((id) => makeRollout(id)),
      roomy,
    );
    const claimAll = async (one: Store, index: number) => {
      const worker = await register(one, `w${index}`);
      const claimed: ClaimedRollout[] = [];
      for (let got = await one.claim(worker, 7); got.length > 0; got = await one.claim(worker, 7)) claimed.push(...got);
      return claimed;
    };
    const claimed = (await Promise.all(stores.map(claimAll))).flat();
    // A worker that found all rows locked stops early; what is left is due.
    const rest = await claimAll(store, 99);
    assert.deepEqual([...claimed, ...rest].map(({ id }) => id).toSorted(), ids.toSorted());
    const { init, queued } = await store.counts();
    assert.deepEqual([init, queued], [120, 0]);
  });

  test('the bound of the queue holds for submissions at the same time, and an id is accepted once', async () => {
    await using opened = await openStores(6);
    const submit = (store: Store, index: number) =>
      store.submit(
        Array.from({ length: 30 }, (_, number) => makeRollout(number < 10 ? `shared${number}` : `s${index}.${number}`)),
        { maxQueued: 80 },
      );
    const outcomes = await Promise.all(opened.stores.map(submit));
    const accepted = outcomes.flatMap((outcome) => (outcome.kind === 'accepted' ? [outcome] : []));
    assert.equal(accepted.length, 3, '10 shared and 3 × 20 are 70; a fourth would make 90');
    assert.equal(accepted.flatMap(({ rollouts }) => rollouts.filter(({ created }) => created)).length, 70);
    assert.equal((await opened.store.counts()).queued, 70);
  });

  test('a cancel and a submission that meet end in a cancelled rollout or none', async () => {
    await using opened = await openStores(2);
    const [a, b] = opened.stores as [Store, Store];
    for (let round = 0; round < 20; round += 1) {
      const id = `c${round}`;
      const [outcome] = await Promise.all([a.cancel(makeId(id), { tombstoneMs: 60_000 }), b.submit([makeRollout(id)], roomy)]);
      assert.deepEqual([outcome, (await a.get(makeId(id)))?.state], ['cancelled', 'cancelled']);
    }
  });

  test('a group begins once and gets one place, if several settle it, and the target is met exactly', async () => {
    await using opened = await openStores(4);
    const { store, stores } = opened;
    await store.createBatch(makeBatch('b', { target: 2, count: 6 }));
    for (let begun = 0; begun < 6; begun += 1) {
      const began = await Promise.all(stores.map((one) => one.beginGroup(makeGroup('b', begun))));
      assert.equal(began.filter(Boolean).length, 1);
    }
    const groups = Array.from({ length: 6 }, (_, index) => toGroup(`b:${index}`));
    const settle = (one: Store) =>
      Promise.all(groups.map((group) => one.settleGroup({ group, batch: toBatch('b'), state: 'delivered', members: [] })));
    const settled = (await Promise.all(stores.map(settle))).flat();
    assert.equal(settled.filter(Boolean).length, 2);
    const batch = await store.batch(toBatch('b'));
    assert.deepEqual([batch?.state, batch?.groups.delivered, batch?.groups.surplus], ['met', 2, 4]);
    const places = (await store.deliveredGroups(toBatch('b'), { after: 0, limit: 10 })).map(({ seq }) => seq);
    assert.deepEqual(places, [1, 2]);
  });

  test('a pause settles when the last workers report and end at the same time', async () => {
    await using opened = await openStores(4);
    const { store, stores } = opened;
    const workers = await Promise.all(stores.map((one, index) => register(one, `p${index}`)));
    const { pause } = await store.pausePolicy({ mode: 'wait' });
    await Promise.all(
      stores.map(async (one, index) => {
        const worker = workers[index] ?? workerId.parse('none');
        if (index === 0) await one.dropWorker(worker, { maxLosses: 3 });
        else await one.reportGate(worker, { pause, generating: 0 });
      }),
    );
    assert.equal((await store.policy()).state, 'paused');
  });

  test('a worker renews its lease and reports its gate while another transaction holds the policy', async () => {
    await using opened = await openStores(1);
    const { store, server, bed } = opened;
    const worker = await register(store, 'w');
    const schema = schemaOf(bed.address);
    const isEnded = assert.rejects(server.run(`BEGIN; SELECT * FROM ${schema}.policy FOR UPDATE; SELECT pg_sleep(60); ROLLBACK`));
    const sleeper = `FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' AND wait_event = 'PgSleep'`;
    while ((await server.run(`SELECT pid ${sleeper}`)).length === 0);
    await Promise.all([store.renew(worker, { leaseMs, report: makeReport(1) }), store.reportGate(worker, { pause: 0, generating: 3 })]);
    assert.equal((await server.run(`SELECT pg_terminate_backend(pid) ${sleeper}`)).length, 1, 'it was held all the time');
    await isEnded;
  });

  test('what workers wait for wakes them, and turns do not', async () => {
    await using opened = await openStores(1);
    const { store, bed } = opened;
    const channel = `millrace_${schemaOf(bed.address)}`;
    const client = new pg.Client({ connectionString: bed.address });
    await using _closed = { [Symbol.asyncDispose]: () => client.end() };
    await client.connect();
    for (const name of [channel, toWorkChannel(channel)]) await client.query(`LISTEN ${name}`);
    const seen: string[] = [];
    const isSeen = (count: number) =>
      new Promise<void>((resolve) =>
        client.on('notification', (notification) => {
          seen.push(notification.channel);
          if (seen.length === count) resolve();
        }),
      );
    const all = isSeen(3);
    await store.appendEvents([{ kind: 'turn-end', data: {} }]);
    await bed.settleLog();
    await setTimeout(100); // longer than two notifications are apart
    await store.submit([makeRollout('a')], roomy);
    await all;
    assert.deepEqual(seen, [channel, channel, toWorkChannel(channel)]);
  });

  test('changes that follow each other are announced once, and all of them are noticed long before the next poll', async () => {
    await using opened = await openStores(2);
    const { store, stores, bed } = opened;
    const client = new pg.Client({ connectionString: bed.address });
    await using _closed = { [Symbol.asyncDispose]: () => client.end() };
    await client.connect();
    await client.query(`LISTEN millrace_${schemaOf(bed.address)}`);
    let announced = 0;
    client.on('notification', () => {
      announced += 1;
    });
    const hintedAt: number[] = [];
    stores[1]?.onHint(() => hintedAt.push(performance.now()));
    await setTimeout(1_100); // the first poll is over
    for (let turn = 0; turn < 10; turn += 1) await store.appendEvents([{ kind: 'turn-end', data: {} }]);
    const writtenAt = performance.now();
    while (!hintedAt.some((at) => at > writtenAt)) await setTimeout(5);
    const afterMs = (hintedAt.find((at) => at > writtenAt) ?? 0) - writtenAt;
    assert.ok(afterMs < 500, `${afterMs} ms after the last change`);
    assert.ok(announced < 10, `${announced} notifications`);
  });

  test('workers that place at the same time balance like one', async () => {
    await using opened = await openStores(4);
    const { store, stores } = opened;
    for (const id of ['one', 'two'])
      await store.joinBackend({ id: backendId.parse(id), url: `http://${id}`, dialect: 'vllm', policyVersion: 0, state: 'up' });
    await store.submit(
      Array.from({ length: 16 }, (_, index) => makeRollout(`p${index}`)),
      roomy,
    );
    const worker = await register(store, 'w');
    const claims = await store.claim(worker, 16);
    for (const claim of claims) for (const to of ['ready', 'run'] as const) await store.move(claim, to);
    await Promise.all(claims.map((claim, index) => stores[index % 4]?.place(claim, {})));
    assert.deepEqual(
      (await store.backendLoads()).map(({ inFlight }) => inFlight),
      [8, 8],
    );
  });

  test('an end and the loss of its worker that meet leave one outcome, and counts that agree with the rows', async () => {
    await using opened = await openStores(3);
    const [a, b, c] = opened.stores as [Store, Store, Store];
    await a.submit(
      Array.from({ length: 40 }, (_, index) => makeRollout(`e${index}`)),
      roomy,
    );
    const worker = await register(a, 'lost');
    const claims = await a.claim(worker, 40);
    const ends = claims.map((claim) => a.finish(claim, { state: 'cancelled', trajectory: makeTrajectory(claim.id, claim.attempt) }));
    const [results] = await Promise.all([
      Promise.all(ends),
      b.dropWorker(worker, { maxLosses: 5 }),
      Promise.all(claims.slice(0, 10).map(({ id }) => c.cancel(id, { tombstoneMs: 0 }))),
    ]);
    const rows = await opened.server.run(`SELECT state, count(*) FROM ${schemaOf(opened.bed.address)}.rollouts GROUP BY 1 ORDER BY 1`);
    const counts = await a.counts();
    const counted = Object.entries(counts).flatMap(([state, n]) => (n === 0 ? [] : [`${state}|${n}`]));
    assert.deepEqual(counted.toSorted(), rows);
    assert.ok(counts.cancelled >= results.filter(Boolean).length);
    const [plain] = await a.classes();
    assert.equal(plain?.queued ?? 0, counts.queued);
  });
});
