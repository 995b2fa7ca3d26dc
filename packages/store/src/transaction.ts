// What an operation gets: statements inside an open transaction, and the time at which it takes place. Statements are in the SQL that
// SQLite and PostgreSQL share, with `?` or `?1` for values. Each engine ignores the hints of the other: `INDEXED BY` is for SQLite,
// and row locks (`FOR UPDATE`) are for PostgreSQL, because a write transaction of SQLite has the whole file to itself.

import type { RolloutState } from '@millrace/protocol';
import type { NewEvent } from './store.ts';

export type SqlValue = string | number | null | Uint8Array;

/** What calls may have to agree on without a row to lock. `submit`: which ids are used, and how long the queue is. */
export type LockName = 'submit' | 'quarantine' | 'place';

/** A rollout of this class leaves a state for another. `line` says how it waited, if it was queued. */
export interface RolloutMove {
  readonly class: number;
  readonly line: string;
  readonly from: RolloutState;
  readonly to: RolloutState;
}

/** Whether the class of this rollout has its turn: one that was due is claimed. */
export function isTurn({ line, from, to }: RolloutMove): boolean {
  return from === 'queued' && line === 'due' && to === 'init';
}

export interface Transaction {
  readonly nowMs: number;
  /** A crash may have taken back the last moves of a rollout, although its worker got their replies. */
  readonly mayMissMoves: boolean;
  /** How many rows a statement should delete: more than one where each statement costs a round trip. */
  readonly rowsPerStatement: number;
  one<Row>(sql: string, ...values: SqlValue[]): Promise<Row | undefined>;
  all<Row>(sql: string, ...values: SqlValue[]): Promise<Row[]>;
  /** The rows for all of the values together. The statement ends with a comparison with one of them: `… WHERE id = ?`. */
  allOf<Row>(sql: string, values: readonly (string | number)[]): Promise<Row[]>;
  /** `into` names a table and its columns: `siblings (seq, group_seq)`. `onConflict` is the clause for rows that are there. */
  insert(into: string, rows: readonly (readonly SqlValue[])[], onConflict?: string): Promise<void>;
  /** The same for a table that numbers its rows; returns the `seq` of each, in order. */
  insertNumbered(into: string, rows: readonly (readonly SqlValue[])[]): Promise<number[]>;
  /** Returns the number of rows changed. */
  run(sql: string, ...values: SqlValue[]): Promise<number>;
  /** Held until the transaction ends. */
  lock(name: LockName): Promise<void>;
  /** Its id is assigned so that ids increase in the order of commits. */
  appendEvent(event: NewEvent): Promise<void>;
  /**
   * Counts a rollout after a statement changed its `state`. A statement that also sets its `line` or `class` needs no call: triggers count
   * it. A class that had its turn (`isTurn`) comes after all that had theirs before.
   */
  noteMove(move: RolloutMove): Promise<void>;
  /** The id of the newest event, even if retention deleted it; 0 when there was none. */
  lastEventId(): Promise<number>;
}
