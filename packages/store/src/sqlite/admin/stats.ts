// What a store holds: rows and bytes by table, and rollouts by outcome. It only reads, so the service goes on.

import type { DatabaseSync } from 'node:sqlite';
import { readStoreSize } from '../engine/store-size.ts';
import { openStoreFile, readNumber, readSchema } from './store-file.ts';

interface TableStats {
  readonly name: string;
  readonly rows: number;
  /** With its indexes. */
  readonly bytes: number;
}

/** `plain` for rollouts without a group, otherwise the state of the group; `unfinished` for all that have not ended. */
interface OutcomeStats {
  readonly outcome: string;
  readonly rollouts: number;
  readonly trajectories: number;
  readonly trajectoryBytes: number;
  /** When the first and the last ended; absent for unfinished ones. */
  readonly oldestMs?: number;
  readonly newestMs?: number;
}

export interface StoreStats {
  readonly path: string;
  readonly schema: number;
  readonly fileBytes: number;
  readonly walBytes: number;
  readonly reusableBytes: number;
  /** On the disk. */
  readonly freeBytes: number;
  /** Whether `compact` can give back pages while the service runs. */
  readonly canCompact: boolean;
  readonly tables: readonly TableStats[];
  readonly outcomes: readonly OutcomeStats[];
}

export async function readStoreStats(path: string): Promise<StoreStats> {
  const db = openStoreFile(path, { readOnly: true });
  try {
    const size = await readStoreSize(path);
    return {
      path,
      schema: readSchema(db),
      ...size,
      reusableBytes: readNumber(db, 'PRAGMA freelist_count') * readNumber(db, 'PRAGMA page_size'),
      canCompact: readNumber(db, 'PRAGMA auto_vacuum') === 2,
      tables: readTables(db),
      outcomes: readOutcomes(db),
    };
  } finally {
    db.close();
  }
}

function readTables(db: DatabaseSync): TableStats[] {
  const sql = `SELECT tbl_name AS name, sum(pgsize) AS bytes FROM dbstat JOIN sqlite_schema USING (name) WHERE aggregate = TRUE
    GROUP BY tbl_name ORDER BY bytes DESC`;
  return db
    .prepare(sql)
    .all()
    .map(({ name, bytes }) => ({ name: String(name), bytes: Number(bytes), rows: readNumber(db, `SELECT count(*) FROM "${name}"`) }));
}

function readOutcomes(db: DatabaseSync): OutcomeStats[] {
  const sql = `SELECT CASE WHEN r.ended_at IS NULL THEN 'unfinished' WHEN is_sibling = 0 THEN 'plain' ELSE g.state END AS outcome,
    count(*) AS rollouts, count(t.seq) AS trajectories, total(coalesce(t.bytes, length(t.body))) AS bytes, min(r.ended_at) AS oldest, max(r.ended_at) AS newest
    FROM rollouts r LEFT JOIN siblings s USING (seq) LEFT JOIN batch_groups g ON g.seq = s.group_seq
    LEFT JOIN trajectories t ON t.seq = r.seq GROUP BY 1 ORDER BY bytes DESC`;
  return db
    .prepare(sql)
    .all()
    .map(({ outcome, rollouts, trajectories, bytes, oldest, newest }) => ({
      outcome: String(outcome),
      rollouts: Number(rollouts),
      trajectories: Number(trajectories),
      trajectoryBytes: Number(bytes),
      ...(oldest !== null && { oldestMs: Number(oldest), newestMs: Number(newest) }),
    }));
}
