// The PostgreSQL store: any number of processes on any number of machines share one database. Each process has two connections: one
// that writes, and one that reads and gets the hints of the others.

import { definedOf } from '@millrace/protocol';
import { type Clock, systemClock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { BlobStore } from '../blobs/blob-store.ts';
import { TrajectoryBlobs } from '../blobs/trajectory-blobs.ts';
import { DiskBudget, type DiskLimits, unlimitedDisk } from '../disk-budget.ts';
import { Hints } from '../rows/hints.ts';
import { claim } from '../rows/operations/claims.ts';
import { reads, type Writes, writes } from '../rows/operations.ts';
import { RowStore } from '../rows/row-store.ts';
import type { Store } from '../store.ts';
import { TimeGuard } from '../time-guard.ts';
import { takeTogether } from './claim.ts';
import { databaseBytes } from './database-size.ts';
import { DatabaseClock } from './engine/database-clock.ts';
import { migrate } from './engine/migrations.ts';
import type { PostgresTransaction } from './engine/postgres-transaction.ts';
import type { Session } from './engine/session.ts';
import { PostgresLink } from './link.ts';
import { SessionKeeper } from './session-keeper.ts';

export interface PostgresStoreOptions {
  /** `postgres://user:password@host:port/database`. */
  readonly address: string;
  /** Time is that of the database unless this is another clock than the system's. */
  readonly clock: Clock;
  readonly log: Log;
  readonly limits?: DiskLimits;
  /** Where new trajectories are kept; in their rows unless set. */
  readonly blobs?: BlobStore;
}

const postgresReads = { ...reads, databaseBytes };

const postgresWrites: Writes = {
  ...writes,
  claim: (transaction, request) => claim(transaction, request, (own, due) => takeTogether(own as PostgresTransaction, due)),
};

/** Connects, and creates the tables in the first schema of the search path if they are missing. The caller closes the store. */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  const { address, log, limits = unlimitedDisk } = options;
  const hasOwnTime = options.clock === systemClock;
  const databaseClock = new DatabaseClock();
  const clock = hasOwnTime ? databaseClock : options.clock;
  const listeners = new Set<() => void>();
  const notify = () => {
    for (const listener of listeners) listener();
  };
  let onOutage: (ms: number) => void = () => {};
  const keep = (onOpen: (session: Session) => Promise<void>) =>
    new SessionKeeper({ address, log, clock: databaseClock, onOpen, onOutage: (ms) => onOutage(ms) });
  const writerSessions = keep(async () => {});
  const first = await writerSessions.use(async (session) => {
    await migrate(session);
    return await readStart(session);
  });
  const { channel, uptimeMs } = first;
  // Every notification that was sent while there was no connection is lost.
  const readerSessions = keep((session) => session.listen(channel, notify).then(notify));
  const common = { hasOwnTime, channel, log };
  const writer = new PostgresLink<Writes>({ ...common, role: 'writer', operations: postgresWrites, sessions: writerSessions });
  const reader = new PostgresLink<typeof postgresReads>({ ...common, role: 'reader', operations: postgresReads, sessions: readerSessions });
  try {
    const changedAtMs = await reader.call('lastEventAtMs', undefined, clock.now());
    const jumpedAtMs = await reader.call('clockJumpedAtMs', undefined, clock.now());
    const guard = new TimeGuard({ clock, log, ...definedOf({ changedAtMs, jumpedAtMs }) });
    onOutage = (ms) => guard.noteStall(ms);
    // While it was down, no worker could renew its lease.
    if (hasOwnTime && uptimeMs < freshStartMs) guard.noteStall(Number.POSITIVE_INFINITY);
    const storeId = await reader.call('storeId', undefined, clock.now());
    const blobs = options.blobs && new TrajectoryBlobs(options.blobs, storeId);
    const hints = new Hints({
      log,
      lastEventId: () => reader.call('lastEventId', undefined, clock.now()),
      watch: (onChange) => {
        listeners.add(onChange);
        return () => listeners.delete(onChange);
      },
    });
    const readSize = async () => {
      const fileBytes = await reader.call('databaseBytes', undefined, clock.now());
      return { fileBytes, walBytes: 0, reusableBytes: 0, freeBytes: Number.MAX_SAFE_INTEGER };
    };
    return new RowStore({ clock, writer, reader, guard, budget: new DiskBudget(limits), blobs, hints, readSize });
  } catch (error) {
    await Promise.all([reader[Symbol.asyncDispose](), writer[Symbol.asyncDispose]()]);
    throw error;
  }
}

/** Leases are given again to all workers once, if the database was started this recently. */
const freshStartMs = 60_000;

async function readStart(session: Session): Promise<{ channel: string; uptimeMs: number }> {
  const sql = `SELECT 'millrace_' || current_schema() AS channel,
    (1000 * extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()))::bigint AS uptime`;
  const [row] = await session.query<{ channel: string; uptime: number }>(sql);
  return { channel: row?.channel ?? 'millrace', uptimeMs: row?.uptime ?? 0 };
}
