// Stores in one PostgreSQL server, each in its own schema, for the contract suite and for tests specific to PostgreSQL. Events are numbered
// a moment after they were committed, so a look at the log first waits until all of them are.

import { type Clock, systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import type { PostgresServer, StoreBed } from '@millrace/testkit';
import { Session } from '../../src/postgres/engine/session.ts';
import { openPostgresStore } from '../../src/postgres/postgres.ts';
import type { Store } from '../../src/store.ts';

export interface PostgresBed extends StoreBed {
  readonly address: string;
  /** Until every committed event is numbered. */
  settleLog(): Promise<void>;
}

export async function openPostgresBed(server: Pick<PostgresServer, 'makeAddress'>, clock: Clock = systemClock): Promise<PostgresBed> {
  const address = await server.makeAddress();
  const handles: Store[] = [];
  let looking: Session | undefined;
  const settleLog = async () => {
    if (!looking || looking.isBroken) looking = await Session.open(address);
    while ((await looking.query<{ left: boolean }>('SELECT has_unnumbered() AS left'))[0]?.left);
  };
  const another = async () => {
    const store = await openPostgresStore({ address, clock, log: silentLog });
    handles.push(store);
    const { events, lastEventId, oldestEventId } = store;
    const settled =
      <Values extends unknown[], Reply>(read: (...values: Values) => Promise<Reply>) =>
      async (...values: Values) => {
        await settleLog();
        return await read(...values);
      };
    return Object.assign(store, { events: settled(events), lastEventId: settled(lastEventId), oldestEventId: settled(oldestEventId) });
  };
  return {
    address,
    store: await another(),
    another,
    settleLog,
    async [Symbol.asyncDispose]() {
      await Promise.all(handles.map((store) => store[Symbol.asyncDispose]()));
      await looking?.close();
    },
  };
}
