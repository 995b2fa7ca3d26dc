// Stores in one PostgreSQL server, each in its own schema, for the contract suite and for tests specific to PostgreSQL.

import { type Clock, systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import type { PostgresServer, StoreBed } from '@millrace/testkit';
import { openPostgresStore } from '../../src/postgres/postgres.ts';
import type { Store } from '../../src/store.ts';

export async function openPostgresBed(
  server: Pick<PostgresServer, 'makeAddress'>,
  clock: Clock = systemClock,
): Promise<StoreBed & { readonly address: string }> {
  const address = await server.makeAddress();
  const handles: Store[] = [];
  const another = async () => {
    const store = await openPostgresStore({ address, clock, log: silentLog });
    handles.push(store);
    return store;
  };
  return {
    address,
    store: await another(),
    another,
    async [Symbol.asyncDispose]() {
      await Promise.all(handles.map((store) => store[Symbol.asyncDispose]()));
    },
  };
}
