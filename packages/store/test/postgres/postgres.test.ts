// The PostgreSQL store passes the contract suite, on a real server.

import { after, describe } from 'node:test';
import { defineStoreSuite, PostgresServer, skipPostgres } from '@millrace/testkit';
import { openPostgresBed } from './bed.ts';

describe('with a PostgreSQL server', { skip: skipPostgres }, () => {
  let opening: Promise<PostgresServer> | undefined;
  after(async () => (await opening)?.[Symbol.asyncDispose]());
  defineStoreSuite('PostgreSQL store', async (clock) => {
    opening ??= PostgresServer.open();
    return await openPostgresBed(await opening, clock);
  });
});
