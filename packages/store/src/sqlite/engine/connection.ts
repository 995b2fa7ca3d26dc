// One connection to the database file: its settings, its prepared statements, and waiting while another process writes.
// Work run by `whileBusy` never fails with SQLITE_BUSY, unless another process locks the file for a minute.

import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import type { SqlValue, Transaction } from '../../transaction.ts';
import { type CountKind, PendingCounts } from './pending-counts.ts';

/** Prepared statements of one connection. */
export interface Statements {
  one<Row>(sql: string, ...values: SQLInputValue[]): Row | undefined;
  all<Row>(sql: string, ...values: SQLInputValue[]): Row[];
  /** Returns the number of rows changed. */
  run(sql: string, ...values: SQLInputValue[]): number;
  exec(sql: string): void;
}

export interface Connection {
  readonly db: DatabaseSync;
  readonly statements: Statements;
  /** Of the open transaction: `commit` writes them. A caller that rolls back to a savepoint undoes them. */
  readonly counts: PendingCounts;
  commit(): void;
  /** SQLite may already have rolled it back. */
  rollBack(): void;
  /** For an operation in the open transaction. Its promises are settled when it returns them, so nothing else runs in between. */
  at(nowMs: number): Transaction;
}

export function openConnection(path: string, options: { readonly readOnly: boolean }): Connection {
  const db = new DatabaseSync(path, { readOnly: options.readOnly, timeout: 0 });
  try {
    // A new file can give freed pages back in small steps; in an existing one the setting changes nothing.
    if (!options.readOnly) whileBusySync(() => db.exec('PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL'));
    // FULL: a commit is on disk before it is acknowledged. The WAL file is truncated after a burst.
    db.exec('PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -16000; PRAGMA temp_store = MEMORY');
  } catch (error) {
    db.close();
    throw error;
  }
  const prepared = new Map<string, PreparedStatement>();
  const prepare = (sql: string): StatementSync => {
    let known = prepared.get(sql);
    if (!known) {
      known = { statement: db.prepare(sql.replaceAll(rowLock, '')), needs: listCounts(sql) };
      prepared.set(sql, known);
    }
    for (const kind of known.needs) counts.write(kind);
    return known.statement;
  };
  const statements = {
    one: <Row>(sql: string, ...values: SQLInputValue[]) => prepare(sql).get(...values) as Row | undefined,
    all: <Row>(sql: string, ...values: SQLInputValue[]) => prepare(sql).all(...values) as Row[],
    run: (sql: string, ...values: SQLInputValue[]) => Number(prepare(sql).run(...values).changes),
    exec: (sql: string) => db.exec(sql),
  };
  const counts = new PendingCounts({ run: statements.run, lastEventId: () => readLastEventId(statements) });
  return {
    db,
    statements,
    counts,
    commit() {
      counts.write('states');
      counts.write('classes');
      db.exec('COMMIT');
      counts.clear();
    },
    rollBack() {
      counts.clear();
      if (db.isTransaction) db.exec('ROLLBACK');
    },
    at: (nowMs) => toTransaction({ ...statements, counts }, nowMs),
  };
}

interface PreparedStatement {
  readonly statement: StatementSync;
  readonly needs: readonly CountKind[];
}

/** The counts that a statement reads or changes. */
function listCounts(sql: string): CountKind[] {
  return [...(/\b(state|rollout)_counts\b/.test(sql) ? ['states' as const] : []), ...(/\bclasses\b/.test(sql) ? ['classes' as const] : [])];
}

/** A write transaction has the whole file to itself, and SQLite has no syntax for locks of rows. */
const rowLock = /\bFOR UPDATE( OF \w+)?( SKIP LOCKED)?/g;

function toTransaction({ one, all, run, counts }: Statements & Pick<Connection, 'counts'>, nowMs: number): Transaction {
  return {
    nowMs,
    mayMissMoves: false,
    rowsPerStatement: 1,
    one: async <Row>(sql: string, ...values: SqlValue[]) => one<Row>(sql, ...values),
    all: async <Row>(sql: string, ...values: SqlValue[]) => all<Row>(sql, ...values),
    allOf: async <Row>(sql: string, values: readonly (string | number)[]) => values.flatMap((value) => all<Row>(sql, value)),
    insert: async (into, rows, onConflict = '') => {
      for (const row of rows) run(`${toInsert(into, row)} ${onConflict}`, ...row);
    },
    insertNumbered: async (into, rows) => rows.map((row) => one<{ seq: number }>(`${toInsert(into, row)} RETURNING seq`, ...row)?.seq ?? 0),
    run: async (sql, ...values) => run(sql, ...values),
    lock: async () => {},
    appendEvent: async (event) => {
      const sql = 'INSERT INTO events (at, kind, rollout_id, group_id, worker_id, backend_id, data) VALUES (?, ?, ?, ?, ?, ?, ?)';
      const { kind, rolloutId = null, group = null, workerId = null, backendId = null, data } = event;
      run(sql, nowMs, kind, rolloutId, group, workerId, backendId, JSON.stringify(data));
    },
    noteMove: async (move) => counts.note(move),
    lastEventId: async () => readLastEventId({ one }),
  };
}

function toInsert(into: string, row: readonly SqlValue[]): string {
  return `INSERT INTO ${into} VALUES (${row.map(() => '?').join(', ')})`;
}

/** Read from the sequence, not from the rows: retention may have deleted the newest event. */
export function readLastEventId({ one }: Pick<Statements, 'one'>): number {
  return one<{ seq: number }>("SELECT seq FROM sqlite_sequence WHERE name = 'events'")?.seq ?? 0;
}

const mostWaits = 60_000;
const oneMs = new Int32Array(new SharedArrayBuffer(4));

/**
 * Retries `work` every millisecond while another process locks the file. SQLite's own busy handler backs off to 100 ms, which
 * lets the process that writes most starve the others.
 */
export async function whileBusy<T>(work: () => T | Promise<T>): Promise<T> {
  for (let waits = 0; ; waits++) {
    try {
      return await work();
    } catch (error) {
      if (!isBusy(error) || waits >= mostWaits) throw error;
      waitOneMs();
    }
  }
}

export function whileBusySync<T>(work: () => T): T {
  for (let waits = 0; ; waits++) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || waits >= mostWaits) throw error;
      waitOneMs();
    }
  }
}

function waitOneMs(): void {
  Atomics.wait(oneMs, 0, 0, 1);
}

export function isBusy(error: unknown): boolean {
  return sqliteCode(error) === 5;
}

/** SQLite's primary result code; absent for other errors. */
export function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return undefined;
  return error.errcode & 0xff;
}
