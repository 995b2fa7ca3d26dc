// The totals of backends against a count of the rows: they agree whatever happens at the same time, and what is rolled back leaves nothing.

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { type BackendId, backendId, workerId } from '@millrace/protocol';
import { makeFailure, makeRollout, PostgresServer, skipPostgres } from '@millrace/testkit';
import pg from 'pg';
import type { ClaimedRollout, Store } from '../../../src/store.ts';
import { openPostgresBed } from '../bed.ts';
import { schemaOf } from '../log-transaction.ts';

const leaseMs = 60_000;
const ids = ['a', 'b', 'c'] as const;

describe('the loads of backends in PostgreSQL', { skip: skipPostgres }, () => {
  let opening: Promise<PostgresServer> | undefined;
  after(async () => (await opening)?.[Symbol.asyncDispose]());

  /** Rollouts in run that no backend has, of several workers. */
  async function openRunning(count: number, workers: number) {
    opening ??= PostgresServer.open();
    const server = await opening;
    const bed = await openPostgresBed(server);
    const { store } = bed;
    for (const id of ids)
      await store.joinBackend({ id: backendId.parse(id), url: `http://${id}`, dialect: 'vllm', policyVersion: 0, state: 'up' });
    const rollouts = Array.from({ length: count }, (_, index) => makeRollout(`r${index}`));
    await store.submit(rollouts, { maxQueued: 1000 });
    const claims: ClaimedRollout[] = [];
    for (let index = 0; index < workers; index += 1) {
      const id = workerId.parse(`w${index}`);
      await store.registerWorker({ id, host: `h${index}`, pid: 1 }, { leaseMs });
      claims.push(...(await store.claim(id, count / workers)));
    }
    for (const claim of claims) for (const to of ['ready', 'run'] as const) await store.move(claim, to);
    const schema = schemaOf(bed.address);
    const counted = () =>
      server.run(`SELECT backend, count(*), sum(context_tokens) FROM ${schema}.rollouts WHERE state = 'run' AND backend IS NOT NULL
        GROUP BY 1 ORDER BY 1`);
    const kept = () => server.run(`SET search_path = ${schema}; SELECT id, in_flight, tokens FROM backend_loads ORDER BY 1`);
    return { server, bed, store, claims, schema, counted, kept, [Symbol.asyncDispose]: () => bed[Symbol.asyncDispose]() };
  }

  test('agree with the rows after placements, contexts, ends and lost workers that meet', async () => {
    await using opened = await openRunning(60, 4);
    const { bed, claims } = opened;
    const stores = [opened.store, await bed.another(), await bed.another()] as const;
    const storeOf = (index: number): Store => stores[index % 3] ?? opened.store;
    const change = async (claim: ClaimedRollout, index: number) => {
      const store = storeOf(index);
      const from = await store.place(claim, { tokens: index });
      await store.noteTraffic({ contexts: [{ claim, tokens: 100 + index }], errors: [] });
      if (index % 5 === 1) await store.place(claim, { exclude: [from].filter((id): id is BackendId => id !== undefined) });
      if (index % 5 === 2) await store.release(claim);
      if (index % 5 === 3) await store.finish(claim, { state: 'failed', failure: makeFailure('run-failed', 1) });
      if (index % 5 === 4) await storeOf(index + 1).cancel(claim.id, { tombstoneMs: 0 });
    };
    await Promise.all([...claims.map(change), stores[2].dropWorker(workerId.parse('w1'), { maxLosses: 3 })]);
    const left = await opened.counted();
    assert.ok(left.length > 0);
    assert.deepEqual(await opened.kept(), left);
    assert.deepEqual(
      (await stores[1].backendLoads()).map(({ id, inFlight, tokens }) => `${id}|${inFlight}|${tokens}`),
      left,
    );
    for (const name of ['w0', 'w2', 'w3']) await stores[0].dropWorker(workerId.parse(name), { maxLosses: 3 });
    assert.deepEqual([await opened.counted(), await opened.kept()], [[], []]);
  });

  test('forget what is rolled back, alone or with its transaction', async () => {
    await using opened = await openRunning(2, 1);
    const client = new pg.Client({ connectionString: opened.bed.address });
    await using _closed = { [Symbol.asyncDispose]: () => client.end() };
    await client.connect();
    const place = (id: string, on: string) => client.query('UPDATE rollouts SET backend = $2, context_tokens = 7 WHERE id = $1', [id, on]);
    const seen = async () => (await client.query('SELECT id, in_flight FROM backend_loads ORDER BY id')).rows;
    await client.query('BEGIN; SAVEPOINT one');
    await place('r0', 'a');
    assert.deepEqual(await seen(), [{ id: 'a', in_flight: '1' }], 'its own transaction sees it');
    await client.query('ROLLBACK TO one');
    await place('r1', 'b');
    await client.query(`SELECT log_changes('[]', '{}', 'none', '{}', true); COMMIT`);
    await client.query('BEGIN');
    await place('r1', 'c');
    await client.query('ROLLBACK');
    assert.deepEqual(await opened.kept(), ['b|1|7']);
    assert.deepEqual(await opened.kept(), await opened.counted());
  });
});
