// The statements of one open transaction in PostgreSQL. Events and what was served are kept until the commit, which writes them last.

import type { EventKind } from '@millrace/protocol';
import pg from 'pg';
import { workerEvents } from '../../event-tail.ts';
import type { NewEvent } from '../../store.ts';
import { isTurn, type LockName, type RolloutMove, type SqlValue, type Transaction } from '../../transaction.ts';
import type { Session } from './session.ts';

/** 3 is the log's, in sequencer-tables.ts. */
const lockNumbers: Record<LockName, number> = { submit: 1, quarantine: 2, place: 4 };

export class PostgresTransaction implements Transaction {
  readonly rowsPerStatement = 100;
  readonly #session: Session;
  readonly #entries: string[] = [];
  readonly #served = new Set<number>();
  #isRepeatable = true;
  nowMs: number;
  /** Whether the savepoint of a call is set. */
  hasSavepoint = false;
  mayMissMoves: boolean;

  constructor(session: Session, { nowMs, mayMissMoves }: Pick<Transaction, 'nowMs' | 'mayMissMoves'>) {
    this.#session = session;
    this.nowMs = nowMs;
    this.mayMissMoves = mayMissMoves;
  }

  async one<Row>(sql: string, ...values: SqlValue[]): Promise<Row | undefined> {
    return (await this.all<Row>(sql, ...values))[0];
  }

  async all<Row>(sql: string, ...values: SqlValue[]): Promise<Row[]> {
    return await this.#session.query<Row>(toPostgres(sql, this.#session.texts), values.map(toValue));
  }

  async allOf<Row>(sql: string, values: readonly (string | number)[]): Promise<Row[]> {
    return await this.#session.query<Row>(toPostgres(sql.replace(/= \?$/, '= ANY (?)'), this.#session.texts), [values]);
  }

  async insert(into: string, rows: readonly (readonly SqlValue[])[], onConflict = ''): Promise<void> {
    for (const some of inPortions(rows)) await this.#insert(into, some, ` ${onConflict}`);
  }

  async insertNumbered(into: string, rows: readonly (readonly SqlValue[])[]): Promise<number[]> {
    const seqs: number[] = [];
    for (const some of inPortions(rows))
      seqs.push(...(await this.#insert<{ seq: number }>(into, some, ' RETURNING seq')).map(({ seq }) => seq));
    return seqs;
  }

  #insert<Row>(into: string, rows: readonly (readonly SqlValue[])[], ending: string): Promise<Row[]> {
    const lists = rows.map((row) => `(${row.map(() => '?').join(', ')})`);
    return this.all<Row>(`INSERT INTO ${into} VALUES ${lists.join(', ')}${ending}`, ...rows.flat());
  }

  async run(sql: string, ...values: SqlValue[]): Promise<number> {
    return (await this.#session.run(toPostgres(sql, this.#session.texts), values.map(toValue))).changed;
  }

  async lock(name: LockName): Promise<void> {
    await this.#session.query('SELECT pg_advisory_xact_lock(hashtext(current_schema()), $1)', [lockNumbers[name]]);
  }

  async appendEvent({ kind, rolloutId, group, workerId, backendId, data }: NewEvent): Promise<void> {
    const ids = [rolloutId, group, workerId, backendId].map((id) => id ?? null);
    if (!repeatable.has(kind)) this.#isRepeatable = false;
    this.#entries.push(JSON.stringify([this.nowMs, kind, ...ids, JSON.stringify(data)]));
  }

  async lastEventId(): Promise<number> {
    return (await this.one<{ last: number }>('SELECT last FROM event_log'))?.last ?? 0;
  }

  /** Triggers count it. */
  async noteMove(move: RolloutMove): Promise<void> {
    if (isTurn(move)) this.#served.add(move.class);
  }

  /** For `undo`. */
  get mark(): number {
    return this.#entries.length;
  }

  /** Forgets the events since the mark: their call was rolled back. */
  undo(mark: number): void {
    this.#entries.splice(mark);
  }

  /**
   * What commits the transaction, in one message. A soft commit is visible at once and on disk with the next one that is not: a crash of the
   * database may take it back. Only what a worker repeats may be lost, so a commit with any other event is never soft.
   */
  toCommit(channel: string, { maySoften }: { readonly maySoften: boolean }): string {
    const isSoft = maySoften && this.#isRepeatable;
    const soften = isSoft ? 'SET LOCAL synchronous_commit = off; ' : '';
    if (this.#entries.length === 0 && this.#served.size === 0) return `${soften}COMMIT`;
    const entries = pg.escapeLiteral(`[${this.#entries.join(',')}]`);
    const served = `'{${[...this.#served].join(',')}}'::bigint[]`;
    return `${soften}SELECT log_changes(${entries}::json, ${served}, ${pg.escapeLiteral(channel)}, ${wakingKinds}, ${!isSoft}); COMMIT`;
  }
}

/** What may be lost with the changes that it is about. */
const repeatable: ReadonlySet<EventKind> = new Set<EventKind>(['rollout-move', 'rollout-place', 'turn-end', 'backend-traffic']);

/** For SQL: the events that workers wait for. */
export const wakingKinds = `'{${workerEvents.join(',')}}'::text[]`;

/** The channel of the events that workers wait for: every notification wakes all processes that listen to its channel. */
export function toWorkChannel(channel: string): string {
  return `${channel}_work`;
}

/** A message of PostgreSQL holds at most 65,535 values. */
const rowsPerInsert = 500;

function inPortions<T>(rows: readonly T[]): (readonly T[])[] {
  const count = Math.ceil(rows.length / rowsPerInsert);
  return Array.from({ length: count }, (_, index) => rows.slice(index * rowsPerInsert, (index + 1) * rowsPerInsert));
}

/** The statements of a session, in PostgreSQL's syntax. */
function toPostgres(sql: string, known: Map<string, string>): string {
  const cached = known.get(sql);
  if (cached !== undefined) return cached;
  let count = 0;
  const text = sql.replaceAll(/ INDEXED BY \w+/g, '').replaceAll(/\?(\d*)/g, (_, number: string) => `$${number || ++count}`);
  // Statements with lists of values are many, and rarely used twice.
  if (sql.length < 1_000) known.set(sql, text);
  return text;
}

/** PostgreSQL's text has no zero character. */
function toValue(value: SqlValue): SqlValue {
  return typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\ufffd') : value;
}
