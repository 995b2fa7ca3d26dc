// One connection to PostgreSQL: its settings, its prepared statements, and how it breaks. It never reconnects: who holds it opens
// another.

import { systemClock } from '@millrace/base/clock';
import pg from 'pg';
import { ConnectionLost } from './faults.ts';

const connectTimeoutMs = 5_000;
/** PostgreSQL ends what takes longer: a statement, a wait for a lock, and a transaction whose process stopped in the middle of it. */
const [statementTimeoutMs, lockTimeoutMs, idleTimeoutMs] = [30_000, 10_000, 10_000];
/** A server that does not answer for this long is unreachable. */
const replyTimeoutMs = statementTimeoutMs + 10_000;

const [int8, numeric] = [20, 1700];
/** Milliseconds, counts and sums fit into a number. */
const types = {
  getTypeParser: (type: number, format?: 'text' | 'binary') =>
    type === int8 || type === numeric ? Number : pg.types.getTypeParser(type, format),
};

/** A statement this long has a list of values and is not used again. */
const longestPrepared = 1_500;

// A commit is on disk before it is acknowledged, whatever the default of the database. Every statement has an index: with statistics from
// when a table was small, or none, the planner would still read all of it. Without that choice it takes costs to be huge, and would compile.
const settings = `SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') IN ('off', 'local');
  SET enable_seqscan = off; SET jit = off`;

export class Session {
  readonly #client: pg.Client;
  readonly #names = new Map<string, string>();
  /** Statements that were translated to PostgreSQL's syntax. */
  readonly texts = new Map<string, string>();
  /** The server's process for this connection, and when it was started: its number may be used again. */
  #process: readonly [pid: number, startedAt: string] | undefined;
  #broken: Error | undefined;

  private constructor(client: pg.Client) {
    this.#client = client;
    client.on('error', (error) => this.#break(error));
    client.on('end', () => this.#break(new Error('the connection was closed')));
  }

  /** Throws a ConnectionLost if there is no connection within a few seconds. */
  static async open(address: string): Promise<Session> {
    const client = new pg.Client({
      connectionString: address,
      application_name: 'millrace',
      connectionTimeoutMillis: connectTimeoutMs,
      query_timeout: replyTimeoutMs,
      statement_timeout: statementTimeoutMs,
      lock_timeout: lockTimeoutMs,
      idle_in_transaction_session_timeout: idleTimeoutMs,
      keepAlive: true,
      types: types as pg.CustomTypesConfig,
    });
    const session = new Session(client);
    try {
      await client.connect();
      await client.query(settings);
      const own = 'SELECT pid, backend_start::text AS started FROM pg_stat_activity WHERE pid = pg_backend_pid()';
      const [row] = await session.script<{ pid: number; started: string }>(own);
      if (row) session.#process = [row.pid, row.started];
      return session;
    } catch (error) {
      await session.close();
      throw isRefusal(error) ? error : new ConnectionLost(error);
    }
  }

  /** The process that the server named when the connection was opened. */
  get announcedPid(): number | undefined {
    const { processID } = this.#client as pg.Client & { readonly processID?: number | null };
    return processID ?? undefined;
  }

  get isBroken(): boolean {
    return this.#broken !== undefined;
  }

  /** For values in `$1`. Throws a ConnectionLost, or PostgreSQL's error. */
  async query<Row>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    return (await this.run<Row>(text, values)).rows;
  }

  async run<Row>(text: string, values: readonly unknown[] = []): Promise<{ rows: Row[]; changed: number }> {
    const { rows, rowCount } = await this.#send(() =>
      this.#client.query({ text, values: [...values], ...(text.length < longestPrepared && { name: this.#nameOf(text) }) }),
    );
    return { rows: rows as Row[], changed: rowCount ?? 0 };
  }

  /** Several statements in one message. Returns the rows of the last that has any. */
  async script<Row>(text: string): Promise<Row[]> {
    const results: unknown = await this.#send(() => this.#client.query(text));
    const lists = (Array.isArray(results) ? results : [results]) as pg.QueryResult[];
    return (lists.findLast(({ rows }) => rows.length > 0)?.rows ?? []) as Row[];
  }

  /** How long the server took, at most; for the difference between its clock and ours. */
  async timed<Row>(text: string): Promise<{ rows: Row[]; sentAt: number; receivedAt: number }> {
    const sentAt = systemClock.monotonic();
    const rows = await this.script<Row>(text);
    return { rows, sentAt, receivedAt: systemClock.monotonic() };
  }

  /** Calls back with the text of each notification of the channel, until the connection ends. */
  async listen(channel: string, onNotification: (text: string) => void): Promise<void> {
    this.#client.on('notification', ({ channel: from, payload = '' }) => {
      if (from === channel) onNotification(payload);
    });
    await this.script(`LISTEN ${pg.escapeIdentifier(channel)}`);
  }

  /** Ends what the server may still do for a connection that broke: its transaction holds locks until the server notices by itself. */
  async endOther(broken: Session): Promise<void> {
    if (!broken.#process) return;
    await this.query(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND backend_start = $2::timestamptz',
      broken.#process,
    );
  }

  onEnd(listener: () => void): void {
    this.#client.once('end', listener);
  }

  async close(): Promise<void> {
    const closing = this.#client.end().catch(() => {}); // it was never open, or is already closed
    await Promise.race([closing, new Promise<void>((resolve) => systemClock.after(1_000, resolve))]);
  }

  async #send<T>(query: () => Promise<T>): Promise<T> {
    if (this.#broken) throw new ConnectionLost(this.#broken);
    try {
      return await query();
    } catch (error) {
      if (error instanceof pg.DatabaseError && !endsSession(error)) throw error;
      this.#break(error instanceof Error ? error : new Error(String(error)));
      throw new ConnectionLost(error);
    }
  }

  #break(error: Error): void {
    this.#broken ??= error;
  }

  #nameOf(text: string): string {
    const known = this.#names.get(text) ?? `s${this.#names.size}`;
    this.#names.set(text, known);
    return known;
  }
}

/** A wrong password, role or database: trying again does not help. */
function isRefusal(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(28|3D|42)/.test(error.code ?? '');
}

/** Shutdown, crash of another process, idle timeout of the transaction, and connections that the server refuses. */
function endsSession({ code = '' }: pg.DatabaseError): boolean {
  return code.startsWith('08') || code.startsWith('57P') || code === '25P03' || code === '53300';
}
