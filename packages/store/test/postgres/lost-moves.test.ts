// What a crash of the database takes back: the last moves and placements, which workers go on from as if they were there; never a claim, an
// end or a submission.

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { backendId, workerId } from '@millrace/protocol';
import { makeReport, makeResult, makeRollout, makeTrajectory, PostgresServer, skipPostgres } from '@millrace/testkit';
import type { Claim } from '../../src/claim.ts';
import { openPostgresStore } from '../../src/postgres/postgres.ts';
import { schemaOf } from './log-transaction.ts';

const leaseMs = 60_000;
const ids = ['moves', 'places', 'ends', 'fails', 'returns'] as const;

describe('a crash of PostgreSQL', { skip: skipPostgres }, () => {
  let opening: Promise<PostgresServer> | undefined;
  after(async () => (await opening)?.[Symbol.asyncDispose]());

  test('takes back the last moves, and their workers go on from the stage that they had reached', async () => {
    opening ??= PostgresServer.open({ isDurable: true });
    const server = await opening;
    const address = await server.makeAddress();
    await using store = await openPostgresStore({ address, clock: systemClock, log: silentLog, hints: 'work' });
    const worker = workerId.parse('w');
    await store.registerWorker({ id: worker, host: 'h', pid: 1 }, { leaseMs });
    await store.joinBackend({ id: backendId.parse('b'), url: 'http://b', dialect: 'vllm', state: 'up' });
    await store.submit(
      ids.map((id) => makeRollout(id)),
      { maxQueued: 100 },
    );
    const claims = await store.claim(worker, ids.length);
    // What is committed softly stays in memory from here on: the process that would write it soon is stopped.
    const [walWriter] = (await server.run("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")).map(Number);
    assert.ok(walWriter);
    process.kill(walWriter, 'SIGSTOP');
    assert.deepEqual(
      claims.map(({ id }) => id),
      ids,
    );
    for (const to of ['ready', 'run'] as const) await Promise.all(claims.map((claim) => store.move(claim, to)));
    await Promise.all(claims.map((claim) => store.place(claim, { tokens: 9 })));
    const states = () => server.run(`SELECT DISTINCT state FROM ${schemaOf(address)}.rollouts`);
    assert.deepEqual(await states(), ['run']);
    await server.stop('SIGKILL');
    process.kill(walWriter, 'SIGKILL');
    await server.start();
    assert.deepEqual(await states(), ['init'], 'the claims are there, and the moves after them are not');
    assert.deepEqual(await store.renew(worker, { leaseMs, report: makeReport(5), held: { claims, maxLosses: 3 } }), {
      alive: true,
      cancelled: [],
    });
    const [moves, places, ends, fails, returns] = claims as unknown as readonly [Claim, Claim, Claim, Claim, Claim];
    assert.equal(await store.move(moves, 'evaluate'), true);
    assert.equal(await store.place(places, { isSticky: true }), 'b');
    const kept = (id: Claim) => ({ result: makeResult(1), trajectory: makeTrajectory(id.id, 1) });
    assert.equal(await store.finish(ends, { state: 'done', ...kept(ends) }), true);
    const failure = { code: 'run-failed', message: 'm', blame: 'sandbox', retryable: true, stage: 'run', attempt: 1 } as const;
    assert.equal(await store.finish(fails, { state: 'failed', failure }), true);
    assert.equal(await store.release(returns), true);
    assert.equal(await store.finish(moves, { state: 'done', ...kept(moves) }), true);
    assert.equal(await store.move(places, 'evaluate'), true);
    const counted = await server.run(`SELECT state, count(*) FROM ${schemaOf(address)}.rollouts GROUP BY 1 ORDER BY 1`);
    assert.deepEqual(counted, ['done|2', 'evaluate|1', 'failed|1', 'queued|1']);
    const counts = Object.entries(await store.counts()).flatMap(([state, n]) => (n === 0 ? [] : [`${state}|${n}`]));
    assert.deepEqual(counts.toSorted(), counted);
    assert.deepEqual(await store.backendLoads(), []);
  });
});
