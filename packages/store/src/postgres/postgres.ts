// The PostgreSQL store: any number of processes on any number of machines share one database. Each process has two connections: one
// that writes, and one that reads and gets the hints of the others. The one that numbers the log has a third.

import { EventEmitter } from 'node:events';
import { type Clock, systemClock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import { definedOf } from '@millrace/protocol';
import type { BlobStore } from '../blobs/blob-store.ts';
import { TrajectoryBlobs } from '../blobs/trajectory-blobs.ts';
import { DiskBudget, type DiskLimits, unlimitedDisk } from '../disk-budget.ts';
import { Hints } from '../rows/hints.ts';
import { observeLink, type StoreObserver } from '../rows/observe-link.ts';
import { claim } from '../rows/operations/claims.ts';
import { classes, load } from '../rows/operations/classes.ts';
import { place } from '../rows/operations/placements.ts';
import { type Reads, reads, type Writes, writes } from '../rows/operations.ts';
import { RowStore } from '../rows/row-store.ts';
import type { Store } from '../store.ts';
import { TimeGuard } from '../time-guard.ts';
import { postgresClaims } from './calls/claim.ts';
import { noteTrafficTogether, readKeptLoads } from './calls/kept-loads.ts';
import { databaseBytes } from './database-size.ts';
import { checkServer } from './engine/check-server.ts';
import { DatabaseClock } from './engine/database-clock.ts';
import { toStoreError } from './engine/faults.ts';
import { migrate } from './engine/migrations.ts';
import { toWorkChannel } from './engine/postgres-transaction.ts';
import { Session } from './engine/session.ts';
import { PostgresLink } from './link.ts';
import { Sequencer } from './sequencer.ts';
import { SessionKeeper } from './session-keeper.ts';

/** All changes, those that workers wait for, or none: then the process only polls. Only a process that gets all changes numbers the log. */
export type HintScope = 'all' | 'work' | 'none';

export interface PostgresStoreOptions {
  /** `postgres://user:password@host:port/database`. */
  readonly address: string;
  /** Time is that of the database unless this is another clock than the system's. */
  readonly clock: Clock;
  readonly log: Log;
  /** How long a call waits for a database that is away before it fails; ten seconds unless set. */
  readonly patienceMs?: number;
  /** What the process is notified of; all changes unless set. */
  readonly hints?: HintScope;
  readonly limits?: DiskLimits;
  readonly observer?: StoreObserver;
  /** Where new trajectories are kept; in their rows unless set. */
  readonly blobs?: BlobStore;
}

/** The counts of classes, with what was not yet added to them. */
const busyClasses = 'live_classes WHERE queued + active > 0';

const postgresReads: Reads & { readonly databaseBytes: typeof databaseBytes } = {
  ...reads,
  databaseBytes,
  backendLoads: readKeptLoads,
  classes: (transaction) => classes(transaction, undefined, busyClasses),
  load: (transaction, batch) => load(transaction, batch, busyClasses),
};

const postgresWrites: Writes = {
  ...writes,
  claim: (transaction, request) => claim(transaction, request, postgresClaims),
  place: (transaction, request) => place(transaction, request, readKeptLoads),
  noteTraffic: noteTrafficTogether,
};

/** Connects, and creates the tables in the first schema of the search path if they are missing. The caller closes the store. */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  const { log, limits = unlimitedDisk } = options;
  const connections = await openConnections(options);
  const { clock, writer, reader, uptimeMs } = connections;
  const read = <Name extends keyof typeof postgresReads>(name: Name) => reader.call(name, undefined as never, clock.now());
  try {
    const [changedAtMs, jumpedAtMs, storeId] = [await read('lastEventAtMs'), await read('clockJumpedAtMs'), await read('storeId')];
    const guard = new TimeGuard({ clock, log, ...definedOf({ changedAtMs, jumpedAtMs }) });
    connections.onOutage((ms) => guard.noteStall(ms));
    // While it was down, no worker could renew its lease.
    if (options.clock === systemClock && uptimeMs < freshStartMs) guard.noteStall(freshStartMs);
    // Workers that have servers in place of the store could not renew theirs while there was no server.
    const isServer = (options.hints ?? 'all') === 'all';
    if (isServer && ((await read('leadUntilMs')) ?? Number.POSITIVE_INFINITY) < clock.now()) guard.noteStall(freshStartMs);
    const blobs = options.blobs && new TrajectoryBlobs(options.blobs, storeId);
    const hints = new Hints({ log, lastEventId: () => read('lastEventId'), watch: connections.onNotification });
    const readBytes = rememberFor(sizeFreshMs, () => read('databaseBytes'));
    const readSize = async () => ({ fileBytes: await readBytes(), walBytes: 0, reusableBytes: 0, freeBytes: Number.MAX_SAFE_INTEGER });
    const links = { writer: observeLink<Writes>(writer, options.observer), reader: observeLink<Reads>(reader, options.observer) };
    const parts = { clock, ...links, guard, budget: new DiskBudget(limits), blobs, hints, readSize };
    if (!isServer) return new RowStore(parts);
    const takeDuty: RowStore['takeDuty'] = (request) => writer.call('takeDuty', request, clock.now());
    const sequencer = new Sequencer({ address: options.address, channel: connections.channel, log, takeDuty });
    sequencer.start();
    return new RowStore({ ...parts, sequencer });
  } catch (error) {
    await Promise.all([reader[Symbol.asyncDispose](), writer[Symbol.asyncDispose]()]);
    throw error;
  }
}

/** A commit is seen a moment after it was announced. */
const echoMs = 5;

interface Connections {
  readonly clock: Clock;
  readonly writer: PostgresLink<Writes>;
  readonly reader: PostgresLink<typeof postgresReads>;
  /** How long the database had been up. */
  readonly uptimeMs: number;
  readonly channel: string;
  onOutage(listener: (ms: number) => void): void;
  onNotification(listener: () => void): () => void;
}

async function openConnections(options: PostgresStoreOptions): Promise<Connections> {
  const { address, log, patienceMs = 10_000, hints = 'all' } = options;
  const hasOwnTime = options.clock === systemClock;
  const databaseClock = new DatabaseClock();
  const emitter = new EventEmitter<{ outage: [number]; notification: [] }>();
  const keep = (onOpen: (session: Session) => Promise<void>) =>
    new SessionKeeper({ address, log, patienceMs, clock: databaseClock, onOpen, onOutage: (ms) => emitter.emit('outage', ms) });
  const writing = keep(async () => {});
  const { channel, uptimeMs } = await prepare(writing, address);
  // What was sent while there was no connection is lost, so a new connection counts as a notification.
  const notify = () => void emitter.emit('notification');
  let stopEcho: (() => void) | undefined;
  /** Changes that follow soon are not announced: it looks once more when the time is over in which they are not. */
  const notifyTwice = (quietMs: string) => {
    notify();
    stopEcho?.();
    stopEcho = systemClock.after(Number(quietMs) + echoMs, notify);
  };
  const reading = keep(async (session) => {
    if (hints === 'none') return;
    await session.listen(hints === 'work' ? toWorkChannel(channel) : channel, notifyTwice);
    notify();
  });
  const common = { hasOwnTime, channel, log, ...definedOf({ observer: options.observer }) };
  return {
    clock: hasOwnTime ? databaseClock : options.clock,
    writer: new PostgresLink({ ...common, role: 'writer', operations: postgresWrites, sessions: writing }),
    reader: new PostgresLink({ ...common, role: 'reader', operations: postgresReads, sessions: reading }),
    uptimeMs,
    channel,
    onOutage: (listener) => void emitter.on('outage', listener),
    onNotification(listener) {
      emitter.on('notification', listener);
      return () => emitter.off('notification', listener);
    },
  };
}

/** The size of a database takes a while to add up, and every submission asks for it. */
const sizeFreshMs = 1_000;

function rememberFor<T>(ms: number, read: () => Promise<T>): () => Promise<T> {
  let known: { readonly at: number; readonly value: T } | undefined;
  return async () => {
    const at = systemClock.monotonic();
    if (known === undefined || at - known.at > ms) known = { at, value: await read() };
    return known.value;
  };
}

/** Leases are given again to all workers once, if the database was started this recently. */
const freshStartMs = 60_000;

async function prepare(sessions: SessionKeeper, address: string): Promise<{ channel: string; uptimeMs: number }> {
  try {
    return await sessions.use(async (session) => {
      await checkServer(session, () => Session.open(address));
      await migrate(session);
      return await readStart(session);
    });
  } catch (error) {
    await sessions.close();
    throw toStoreError(error, sessions.where);
  }
}

async function readStart(session: Session): Promise<{ channel: string; uptimeMs: number }> {
  const sql = `SELECT 'millrace_' || current_schema() AS channel,
    (1000 * extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()))::bigint AS uptime`;
  const [row] = await session.query<{ channel: string; uptime: number }>(sql);
  return { channel: row?.channel ?? 'millrace', uptimeMs: row?.uptime ?? 0 };
}
