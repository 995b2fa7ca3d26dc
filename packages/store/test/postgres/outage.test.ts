// What a store does while PostgreSQL is away: it waits and repeats what was not committed, asks what became of a commit whose reply was
// lost, and loses no worker for it.

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { rolloutId, workerId } from '@millrace/protocol';
import { makeReport, makeRollout, PostgresServer, skipPostgres } from '@millrace/testkit';
import { Session } from '../../src/postgres/engine/session.ts';
import { openPostgresStore } from '../../src/postgres/postgres.ts';
import { StoreFault } from '../../src/store-fault.ts';
import { openPostgresBed } from './bed.ts';
import { openCuttingProxy } from './cutting-proxy.ts';

const roomy = { maxQueued: 100_000 };

describe('a store whose PostgreSQL fails', { skip: skipPostgres }, () => {
  let opening: Promise<PostgresServer> | undefined;
  const openServer = () => (opening ??= PostgresServer.open({ isDurable: true }));
  after(async () => (await opening)?.[Symbol.asyncDispose]());

  test('calls that meet a crash of the server are repeated: nothing acknowledged is lost, nothing is doubled', async () => {
    const server = await openServer();
    await using bed = await openPostgresBed(server);
    const { store } = bed;
    const submit = async (lane: number) => {
      for (let round = 0; round < 8; round += 1) await store.submit([makeRollout(`x${lane}.${round}`)], roomy);
    };
    const submitting = Promise.all(Array.from({ length: 10 }, (_, lane) => submit(lane)));
    await store.submit([makeRollout('first')], roomy);
    await server.stop('SIGQUIT');
    await server.start();
    await submitting;
    assert.equal((await store.counts()).queued, 81);
    const events = await store.events(0, { limit: 1_000, kinds: ['rollout-queue'] });
    assert.equal(new Set(events.events.map(({ rollout_id }) => rollout_id)).size, 81);
    assert.equal(events.events.length, 81);
  });

  for (const [what, isForwarded] of [
    ['was done', true],
    ['was not done', false],
  ] as const)
    test(`a commit whose reply is lost counts once, if it ${what}`, async () => {
      const server = await openServer();
      await using bed = await openPostgresBed(server);
      await using proxy = await openCuttingProxy(server.socketFolder);
      const address = bed.address.replace(encodeURIComponent(server.socketFolder), encodeURIComponent(proxy.socketFolder));
      await using store = await openPostgresStore({ address, clock: systemClock, log: silentLog });
      await store.submit([makeRollout('a')], roomy);
      const worker = workerId.parse('w');
      await store.registerWorker({ id: worker, host: 'host', pid: 1 }, { leaseMs: 60_000 });
      proxy.cutNextCommit({ isForwarded });
      const [claim] = await store.claim(worker, 1);
      assert.deepEqual([claim?.id, claim?.attempt, proxy.cuts], ['a', 1, 1]);
      proxy.cutNextCommit({ isForwarded });
      assert.equal(claim && (await store.finish(claim, { state: 'cancelled' })), true);
      assert.equal(proxy.cuts, 2);
      const ends = await store.events(0, { limit: 100, kinds: ['rollout-end'] });
      assert.equal(ends.events.length, 1);
      assert.equal((await store.get(rolloutId.parse('a')))?.state, 'cancelled');
    });

  test('an outage longer than the lease loses no worker, and hints arrive again after it', async () => {
    const server = await openServer();
    await using bed = await openPostgresBed(server);
    const { store } = bed;
    const other = await bed.another();
    const worker = workerId.parse('w');
    const lease = { leaseMs: 500 };
    await store.registerWorker({ id: worker, host: 'host', pid: 1 }, lease);
    await server.stop('SIGKILL');
    await new Promise((resolve) => setTimeout(resolve, 2 * lease.leaseMs));
    await server.start();
    assert.equal(await store.expire({ ...lease, maxLosses: 3 }), 0);
    await Promise.all([store, other].map((one) => one.expire({ ...lease, maxLosses: 3 })));
    assert.equal((await store.renew(worker, { leaseMs: 60_000, report: makeReport(0) })).alive, true);
    const hinted = Promise.withResolvers<void>();
    await other.lastEventId();
    other.onHint(hinted.resolve);
    await store.submit([makeRollout('after')], roomy);
    await hinted.promise;
  });

  test('a transaction whose connection was lost is ended by its process, not by a timeout of the server', async () => {
    const server = await openServer();
    await using bed = await openPostgresBed(server);
    await using proxy = await openCuttingProxy(server.socketFolder);
    const address = bed.address.replace(encodeURIComponent(server.socketFolder), encodeURIComponent(proxy.socketFolder));
    await using store = await openPostgresStore({ address, clock: systemClock, log: silentLog });
    const worker = workerId.parse('w');
    await store.registerWorker({ id: worker, host: 'host', pid: 1 }, { leaseMs: 60_000 });
    const [holder, watcher] = [await Session.open(bed.address), await Session.open(bed.address)];
    await holder.script("BEGIN; SELECT id FROM workers WHERE id = 'w' FOR UPDATE");
    const waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    const untilWaiting = async (before: number | undefined): Promise<number> => {
      for (;;) {
        const pids = (await watcher.query<{ pid: number }>(waiting)).map(({ pid }) => pid);
        const [pid] = pids.filter((one) => one !== before);
        if (pid !== undefined && pids.length === 1) return pid;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    const renewing = store.renew(worker, { leaseMs: 60_000, report: makeReport(0) });
    const first = await untilWaiting(undefined);
    const lostAt = performance.now();
    proxy.loseClients();
    await untilWaiting(first);
    const tookMs = performance.now() - lostAt;
    assert.ok(tookMs < 9_000, `${tookMs} ms: the lock timeout of the server has ended it`);
    for (const session of [holder, watcher]) await session.close();
    assert.equal((await renewing).alive, true);
  });

  test('leases that are given again after an outage wait for no row, and one that was skipped is given later', async () => {
    const server = await openServer();
    await using bed = await openPostgresBed(server);
    const [one, two] = [workerId.parse('one'), workerId.parse('two')];
    for (const id of [one, two]) await bed.store.registerWorker({ id, host: 'host', pid: 1 }, { leaseMs: 20_000 });
    // A store that is opened just after its database was started does not trust the leases it finds.
    const other = await bed.another();
    const giveAgain = () => other.expire({ leaseMs: 60_000, maxLosses: 3 });
    const readGiven = async () =>
      (await other.workers()).filter(({ leaseUntilMs }) => leaseUntilMs > Date.now() + 40_000).map(({ id }) => id);
    const session = await Session.open(bed.address);
    await session.script("BEGIN; SELECT id FROM workers WHERE id = 'one' FOR UPDATE");
    await giveAgain();
    assert.deepEqual(await readGiven(), [two]);
    await session.close();
    await giveAgain();
    assert.deepEqual(await readGiven(), [one, two]);
  });

  test('a database that stays away is a fault of the store, which names it without its password', async () => {
    const address = 'postgres://millrace:secret@localhost/postgres?host=%2Fnowhere';
    const opened = openPostgresStore({ address, clock: systemClock, log: silentLog, patienceMs: 100 });
    await assert.rejects(opened, (error: Error) => {
      assert.ok(error instanceof StoreFault, String(error));
      assert.match(error.message, /postgres:\/\/millrace@localhost.*ENOENT/);
      return true;
    });
  });
});
