// One connection to the database file: its settings, its prepared statements, and the wait while another process writes.
// Nothing that goes through `whileBusy` ever answers SQLITE_BUSY, unless another process holds the file for a minute.

import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';

/** What an operation works with: the connection inside an open transaction, and the caller's time. */
export interface Session {
  readonly nowMs: number;
  one<Row>(sql: string, ...values: SQLInputValue[]): Row | undefined;
  all<Row>(sql: string, ...values: SQLInputValue[]): Row[];
  /** Answers how many rows changed. */
  run(sql: string, ...values: SQLInputValue[]): number;
  exec(sql: string): void;
}

export interface Connection {
  readonly db: DatabaseSync;
  at(nowMs: number): Session;
}

export function openConnection(path: string, options: { readonly readOnly: boolean }): Connection {
  const db = new DatabaseSync(path, { readOnly: options.readOnly, timeout: 0 });
  try {
    if (!options.readOnly) whileBusy(() => db.exec('PRAGMA journal_mode = WAL'));
    // FULL: a commit is on the disk before it is answered. The WAL file gives its space back after a burst.
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
 * Runs `work` again, a millisecond later, for as long as another process holds the file. SQLite's own waiting backs off to
 * 100 ms and so lets the process that writes most starve the others.
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

/** SQLite's primary result code, where the error is SQLite's. */
export function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return undefined;
  return error.errcode & 0xff;
}
