// Keeps one session open: opens it on first use, and again after it broke, with growing pauses. Work that was not committed when the
// connection broke is run again on the next one.

import { sleep, systemClock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import { messageOf } from '@millrace/protocol';
import { hidePassword } from '../store-address.ts';
import type { DatabaseClock } from './engine/database-clock.ts';
import { ConnectionLost } from './engine/faults.ts';
import { Session } from './engine/session.ts';

/** How long a call waits for the outcome of its commit. */
const outcomePatienceMs = 60_000;
const [firstPauseMs, longestPauseMs] = [50, 1_000];

interface SessionKeeperOptions {
  readonly address: string;
  readonly clock: DatabaseClock;
  readonly log: Log;
  /** How long a call waits for the database to come back before it fails. */
  readonly patienceMs: number;
  /** Called for each new session before its first use. */
  readonly onOpen?: (session: Session) => Promise<void>;
  /** Called with how long there was no connection, when there is one again. */
  readonly onOutage?: (ms: number) => void;
}

// A crash forgets transactions that left nothing on the disk, and gives their numbers to others. Recovery ends with a checkpoint, which
// says from which number on: one that began before it and has such a number is lost. Its time is in whole seconds.
const outcomeSql = `SELECT CASE WHEN $1::xid8 >= known.next AND known.at >= floor($2::float8 / 1000) THEN 'aborted' ELSE pg_xact_status($1::xid8) END AS status
  FROM (SELECT extract(epoch FROM checkpoint_time) AS at,
    (split_part(next_xid, ':', 1)::numeric * 4294967296 + split_part(next_xid, ':', 2)::numeric)::text::xid8 AS next FROM pg_control_checkpoint()) AS known`;

export class SessionKeeper {
  readonly #options: SessionKeeperOptions;
  /** The address without its password. */
  readonly where: string;
  #session: Session | undefined;
  /** The last one, until there is another. */
  #broken: Session | undefined;
  #lostAt: number | undefined;
  #hasLost = false;

  constructor(options: SessionKeeperOptions) {
    this.#options = options;
    this.where = hidePassword(options.address);
  }

  /** Whether there was another connection before: the database may have crashed, and lost what was committed softly. */
  get hasLost(): boolean {
    return this.#hasLost;
  }

  /** Repeats the work while its connection breaks. Throws the ConnectionLost when it has no connection for too long. */
  async use<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return await this.#patiently(this.#options.patienceMs, async () => {
      const session = await this.open();
      return await work(session);
    });
  }

  async open(): Promise<Session> {
    if (this.#session && !this.#session.isBroken) return this.#session;
    if (this.#session) this.#lostAt ??= systemClock.monotonic();
    this.#broken = this.#session ?? this.#broken;
    if (this.#broken) this.#hasLost = true;
    await this.close();
    const session = await Session.open(this.#options.address);
    try {
      if (this.#broken) await session.endOther(this.#broken);
      this.#broken = undefined;
      await this.#options.onOpen?.(session);
    } catch (error) {
      await session.close();
      throw error;
    }
    this.#session = session;
    session.onEnd(() => {
      if (this.#session === session) this.#lostAt ??= systemClock.monotonic();
    });
    if (this.#lostAt !== undefined) {
      const outageMs = systemClock.monotonic() - this.#lostAt;
      this.#options.log.info('store-reconnected', { store: this.where, outageMs: Math.round(outageMs) });
      this.#options.onOutage?.(outageMs);
    }
    this.#lostAt = undefined;
    return session;
  }

  /** Begins a transaction and learns the date of the database. */
  async begin(session: Session, role: 'writer' | 'reader'): Promise<{ nowMs: number; transactionId: string }> {
    const now = '(1000 * extract(epoch FROM clock_timestamp()))::bigint AS now';
    const sql =
      role === 'writer'
        ? `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT ${now}, pg_current_xact_id()::text AS id`
        : `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT ${now}, '' AS id`;
    const { rows, ...moments } = await session.timed<{ now: number; id: string }>(sql);
    const { now: nowMs = 0, id: transactionId = '' } = rows[0] ?? {};
    this.#options.clock.learn(nowMs, moments);
    return { nowMs, transactionId };
  }

  /** Asks until the transaction has ended. Throws when the database cannot be reached. */
  async findOutcome(transactionId: string, begunAtMs: number): Promise<'committed' | 'aborted' | undefined> {
    return await this.#patiently(outcomePatienceMs, async () => {
      for (;;) {
        const [row] = await (await this.open()).query<{ status: string | null }>(outcomeSql, [transactionId, begunAtMs]);
        const status = row?.status ?? undefined;
        if (status === 'committed' || status === 'aborted' || status === undefined) return status;
        await sleep(firstPauseMs);
      }
    });
  }

  async close(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    await session?.close();
  }

  async #patiently<T>(forMs: number, work: () => Promise<T>): Promise<T> {
    const startedAt = systemClock.monotonic();
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof ConnectionLost)) throw error;
        this.#lostAt ??= systemClock.monotonic();
        this.#options.log.warn('store-connection-lost', { store: this.where, error: messageOf(error) });
        if (systemClock.monotonic() - startedAt > forMs) throw error;
      }
      await sleep(pauseMs * (0.5 + Math.random()));
    }
  }
}
