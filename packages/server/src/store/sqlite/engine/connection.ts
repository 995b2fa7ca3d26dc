// One connection to the database file: its settings, its prepared statements, and waiting while another process writes.
// Work run by `whileBusy` never fails with SQLITE_BUSY, unless another process locks the file for a minute.

import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';

/** What an operation gets: the connection inside an open transaction, and the time at which it takes place. */
export interface Transaction {
  readonly nowMs: number;
  one<Row>(sql: string, ...values: SQLInputValue[]): Row | undefined;
  all<Row>(sql: string, ...values: SQLInputValue[]): Row[];
  /** Returns the number of rows changed. */
  run(sql: string, ...values: SQLInputValue[]): number;
  exec(sql: string): void;
}

export interface Connection {
  readonly db: DatabaseSync;
  at(nowMs: number): Transaction;
}

export function openConnection(path: string, options: { readonly readOnly: boolean }): Connection {
  const db = new DatabaseSync(path, { readOnly: options.readOnly, timeout: 0 });
  try {
    // A new file can give freed pages back in small steps; in an existing one the setting changes nothing.
    if (!options.readOnly) whileBusy(() => db.exec('PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL'));
    // FULL: a commit is on disk before it is acknowledged. The WAL file is truncated after a burst.
    db.exec('PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -16000; PRAGMA temp_store = MEMORY');
  } catch (error) {
    db.close();
    throw error;
  }
  const prepared = new Map<string, StatementSync>();
  const prepare = (sql: string): StatementSync => {
    const known = prepared.get(sql);
    if (known) return known;
    const statement = db.prepare(sql);
    prepared.set(sql, statement);
    return statement;
  };
  const statements = {
    one: <Row>(sql: string, ...values: SQLInputValue[]) => prepare(sql).get(...values) as Row | undefined,
    all: <Row>(sql: string, ...values: SQLInputValue[]) => prepare(sql).all(...values) as Row[],
    run: (sql: string, ...values: SQLInputValue[]) => Number(prepare(sql).run(...values).changes),
    exec: (sql: string) => db.exec(sql),
  };
  return { db, at: (nowMs) => ({ ...statements, nowMs }) };
}

const mostWaits = 60_000;
const oneMs = new Int32Array(new SharedArrayBuffer(4));

/**
 * Retries `work` every millisecond while another process locks the file. SQLite's own busy handler backs off to 100 ms, which
 * lets the process that writes most starve the others.
 */
export function whileBusy<T>(work: () => T): T {
  for (let waits = 0; ; waits++) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || waits >= mostWaits) throw error;
      Atomics.wait(oneMs, 0, 0, 1);
    }
  }
}

export function isBusy(error: unknown): boolean {
  return sqliteCode(error) === 5;
}

/** SQLite's primary result code; absent for other errors. */
export function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return undefined;
  return error.errcode & 0xff;
}
