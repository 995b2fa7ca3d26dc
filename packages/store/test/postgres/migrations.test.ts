// A store of an older schema: it is migrated when it is opened and has the tables of a new one, and a migration that fails changes nothing.

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { FakeClock, makeRollout, PostgresServer, skipPostgres } from '@millrace/testkit';
import { openPostgresStore } from '../../src/postgres/postgres.ts';
import { openPostgresBed } from './bed.ts';
import { schemaOf } from './log-transaction.ts';

const columns = `SELECT table_name, column_name, data_type, column_default FROM information_schema.columns
  WHERE table_schema = current_schema() ORDER BY 1, 2`;

describe('migrations of a PostgreSQL store', { skip: skipPostgres }, () => {
  let opening: Promise<PostgresServer> | undefined;
  after(async () => (await opening)?.[Symbol.asyncDispose]());

  /** A store as schema 1 left it: without the log of turns. */
  async function openOld() {
    opening ??= PostgresServer.open();
    const server = await opening;
    const bed = await openPostgresBed(server);
    const inSchema = (sql: string) => server.run(`SET search_path = ${schemaOf(bed.address)}; ${sql}`);
    const fresh = await inSchema(columns);
    await bed.store.submit([makeRollout('a')], { maxQueued: 10 });
    await inSchema('DROP TABLE turn_log; UPDATE store_schema SET version = 1');
    return { bed, inSchema, fresh, reopen: () => openPostgresStore({ address: bed.address, clock: new FakeClock(), log: silentLog }) };
  }

  test('what was in it is there, and it has the tables of a new one', async () => {
    const { bed, inSchema, fresh, reopen } = await openOld();
    await using _bed = bed;
    await using store = await reopen();
    assert.equal((await store.counts()).queued, 1);
    assert.deepEqual(await inSchema(columns), fresh);
  });

  test('one that fails leaves the tables as they were, and says which', async () => {
    const { bed, inSchema, reopen } = await openOld();
    await using _bed = bed;
    await inSchema('CREATE VIEW turn_log AS SELECT 1 AS body');
    const before = await inSchema(`${columns}; SELECT version FROM store_schema`);
    await assert.rejects(reopen(), { message: /the migration of the store from schema 1 failed, and it was left as it was/ });
    assert.deepEqual(await inSchema(`${columns}; SELECT version FROM store_schema`), before);
  });

  test('tables that need a newer version are refused', async () => {
    const { bed, inSchema, reopen } = await openOld();
    await using _bed = bed;
    await inSchema('UPDATE store_schema SET version = 99, usable_from = 98');
    await assert.rejects(reopen(), { message: /the store has schema 99, which needs at least schema 98/ });
  });
});
