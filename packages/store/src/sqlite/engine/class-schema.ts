// The tables of the classes of work and the counts of rollouts. They are kept in the transaction that changes a rollout, so no query
// counts rows: by triggers, except for statements that set only the state of a rollout (pending-counts.ts).

const isActive = (row: string) => `(${row}.state IN ('init', 'ready', 'run'))`;
const isDue = (row: string) => `(${row}.state = 'queued' AND ${row}.line = 'due')`;

/** Adds, or with `-` subtracts, what one row of `rollouts` contributes to its class. */
const countInClass = (row: string, sign: '+' | '-') => `UPDATE classes SET queued = queued ${sign} (${row}.state = 'queued'),
    due = due ${sign} ${isDue(row)}, active = active ${sign} ${isActive(row)} WHERE seq = ${row}.class;`;

// The `line` of a queued rollout: `due` can be claimed, `delayed` not before its `not_before`. A class's `share` is the measure of
// fairness, `served` the id of the event at which it last had its turn.
export const classTables = `
CREATE TABLE state_counts (state TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO state_counts SELECT column1, (SELECT count(*) FROM rollouts WHERE state = column1)
  FROM (VALUES ('queued'), ('init'), ('ready'), ('run'), ('evaluate'), ('done'), ('failed'), ('cancelled'));
CREATE TABLE classes (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  rank INTEGER NOT NULL,
  weight REAL NOT NULL,
  queued INTEGER NOT NULL DEFAULT 0,
  due INTEGER NOT NULL DEFAULT 0,
  active INTEGER NOT NULL DEFAULT 0,
  served INTEGER NOT NULL DEFAULT 0,
  share REAL GENERATED ALWAYS AS (active / weight) VIRTUAL,
  wanted INTEGER GENERATED ALWAYS AS (queued + active) VIRTUAL,
  UNIQUE (kind, name, rank)
) STRICT;
CREATE INDEX classes_due ON classes (rank DESC, share, served) WHERE due > 0;
CREATE INDEX classes_busy ON classes (rank DESC, seq) WHERE wanted > 0;
ALTER TABLE rollouts ADD COLUMN class INTEGER NOT NULL DEFAULT 0;
ALTER TABLE rollouts ADD COLUMN line TEXT NOT NULL DEFAULT 'due';
CREATE INDEX rollouts_due ON rollouts (class, seq) WHERE state = 'queued' AND line = 'due';
CREATE INDEX rollouts_delayed ON rollouts (not_before) WHERE state = 'queued' AND line = 'delayed';
CREATE TRIGGER rollout_added AFTER INSERT ON rollouts BEGIN
  UPDATE state_counts SET n = n + 1 WHERE state = NEW.state;
  ${countInClass('NEW', '+')}
END;
CREATE TRIGGER rollout_moved AFTER UPDATE OF state ON rollouts WHEN OLD.state <> NEW.state BEGIN
  UPDATE state_counts SET n = n - 1 WHERE state = OLD.state;
  UPDATE state_counts SET n = n + 1 WHERE state = NEW.state;
END;
CREATE TRIGGER rollout_reclassed AFTER UPDATE OF state, class, line ON rollouts
  WHEN OLD.class <> NEW.class OR (OLD.state = 'queued') <> (NEW.state = 'queued')
    OR ${isDue('OLD')} <> ${isDue('NEW')} OR ${isActive('OLD')} <> ${isActive('NEW')} BEGIN
  ${countInClass('OLD', '-')}
  ${countInClass('NEW', '+')}
END;
CREATE TRIGGER rollout_deleted AFTER DELETE ON rollouts BEGIN
  UPDATE state_counts SET n = n - 1 WHERE state = OLD.state;
  ${countInClass('OLD', '-')}
END;
INSERT INTO classes (kind, name, rank, weight) VALUES ('plain', '', 0, 1);
INSERT INTO classes (kind, name, rank, weight) SELECT DISTINCT 'batch', batches.id, 0, 1
  FROM rollouts JOIN siblings USING (seq) JOIN batches ON batches.seq = batch_seq WHERE rollouts.ended_at IS NULL;
UPDATE rollouts SET line = 'delayed' WHERE state = 'queued' AND not_before > queued_at;
UPDATE rollouts SET class = coalesce((SELECT classes.seq FROM siblings JOIN batches ON batches.seq = batch_seq
  JOIN classes ON kind = 'batch' AND name = batches.id WHERE siblings.seq = rollouts.seq),
  (SELECT seq FROM classes WHERE kind = 'plain')) WHERE ended_at IS NULL;
`;

export const states = ['queued', 'init', 'ready', 'run', 'evaluate', 'done', 'failed', 'cancelled'] as const;
const countAll = (change: (state: string) => string) => states.map((state) => `${state} = ${state} ${change(state)}`).join(', ');

/** `moved` and `relined` are the columns that a statement sets. */
const renderMoveTriggers = (moved: string, relined: string) => `
CREATE TRIGGER rollout_moved AFTER UPDATE OF ${moved} ON rollouts WHEN OLD.state <> NEW.state BEGIN
  UPDATE rollout_counts SET ${countAll((state) => `+ (NEW.state = '${state}') - (OLD.state = '${state}')`)} WHERE id = 1;
END;
CREATE TRIGGER rollout_relined AFTER UPDATE OF ${relined} ON rollouts WHEN OLD.class = NEW.class
  AND ((OLD.state = 'queued') <> (NEW.state = 'queued') OR ${isDue('OLD')} <> ${isDue('NEW')} OR ${isActive('OLD')} <> ${isActive('NEW')}) BEGIN
  UPDATE classes SET queued = queued + (NEW.state = 'queued') - (OLD.state = 'queued'),
    due = due + ${isDue('NEW')} - ${isDue('OLD')}, active = active + ${isActive('NEW')} - ${isActive('OLD')} WHERE seq = NEW.class;
END;`;

/** The counts in one row, and one update of a class for each move: a trigger's every statement costs as much as the move itself. */
export const oneRowCounts = `
CREATE TABLE rollout_counts (id INTEGER PRIMARY KEY CHECK (id = 1), ${states.map((state) => `${state} INTEGER NOT NULL`).join(', ')}) STRICT;
INSERT INTO rollout_counts SELECT 1, ${states.map((state) => `(SELECT n FROM state_counts WHERE state = '${state}')`).join(', ')};
DROP TRIGGER rollout_added;
DROP TRIGGER rollout_moved;
DROP TRIGGER rollout_reclassed;
DROP TRIGGER rollout_deleted;
DROP TABLE state_counts;
CREATE VIEW state_counts AS ${states.map((state) => `SELECT '${state}' AS state, ${state} AS n FROM rollout_counts`).join(' UNION ALL ')};
CREATE TRIGGER rollout_added AFTER INSERT ON rollouts BEGIN
  UPDATE rollout_counts SET ${countAll((state) => `+ (NEW.state = '${state}')`)} WHERE id = 1;
  ${countInClass('NEW', '+')}
END;${renderMoveTriggers('state', 'state, line')}
CREATE TRIGGER rollout_reclassed AFTER UPDATE OF class ON rollouts WHEN OLD.class <> NEW.class BEGIN
  ${countInClass('OLD', '-')}
  ${countInClass('NEW', '+')}
END;
CREATE TRIGGER rollout_deleted AFTER DELETE ON rollouts BEGIN
  UPDATE rollout_counts SET ${countAll((state) => `- (OLD.state = '${state}')`)} WHERE id = 1;
  ${countInClass('OLD', '-')}
END;
`;

/** Most moves set no `line`: without a trigger they cost half as much, and `PendingCounts` counts them. */
export const rareTriggers = `
DROP TRIGGER rollout_moved;
DROP TRIGGER rollout_relined;${renderMoveTriggers('line', 'line')}
`;
