// The tables of the classes of work and the counts of rollouts. They are kept in the transaction that changes a rollout, so no query
// counts rows: by triggers, except for statements that set only the state of a rollout (pending-counts.ts).

const isActive = (row: string) => `(${row}.state IN ('init', 'ready', 'run'))`;
const isDue = (row: string) => `(${row}.state = 'queued' AND ${row}.line = 'due')`;

export const states = ['queued', 'init', 'ready', 'run', 'evaluate', 'done', 'failed', 'cancelled'] as const;
const perState = (render: (state: string) => string, separator = ', ') => states.map(render).join(separator);
const countAll = (change: (state: string) => string) => perState((state) => `${state} = ${state} ${change(state)}`);

/** Adds, or with `-` subtracts, what one row of `rollouts` contributes to its class. */
const countInClass = (row: string, sign: '+' | '-') => `UPDATE classes SET queued = queued ${sign} (${row}.state = 'queued'),
    due = due ${sign} ${isDue(row)}, active = active ${sign} ${isActive(row)} WHERE seq = ${row}.class;`;

// A class's `share` is the measure of fairness, `served` the id of the event at which it last had its turn. The counts of states are one row,
// and a move updates a class once: each statement of a trigger costs as much as the move itself. Most moves set no `line`: without a trigger
// they cost half as much, and `PendingCounts` counts them.
export const classTables = `
CREATE TABLE rollout_counts (id INTEGER PRIMARY KEY CHECK (id = 1), ${perState((state) => `${state} INTEGER NOT NULL`)}) STRICT;
INSERT INTO rollout_counts VALUES (1, ${perState(() => '0')});
CREATE VIEW state_counts AS ${perState((state) => `SELECT '${state}' AS state, ${state} AS n FROM rollout_counts`, ' UNION ALL ')};
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
INSERT INTO classes (kind, name, rank, weight) VALUES ('plain', '', 0, 1);
CREATE TRIGGER rollout_added AFTER INSERT ON rollouts BEGIN
  UPDATE rollout_counts SET ${countAll((state) => `+ (NEW.state = '${state}')`)} WHERE id = 1;
  ${countInClass('NEW', '+')}
END;
CREATE TRIGGER rollout_moved AFTER UPDATE OF line ON rollouts WHEN OLD.state <> NEW.state BEGIN
  UPDATE rollout_counts SET ${countAll((state) => `+ (NEW.state = '${state}') - (OLD.state = '${state}')`)} WHERE id = 1;
END;
CREATE TRIGGER rollout_relined AFTER UPDATE OF line ON rollouts WHEN OLD.class = NEW.class
  AND ((OLD.state = 'queued') <> (NEW.state = 'queued') OR ${isDue('OLD')} <> ${isDue('NEW')} OR ${isActive('OLD')} <> ${isActive('NEW')}) BEGIN
  UPDATE classes SET queued = queued + (NEW.state = 'queued') - (OLD.state = 'queued'),
    due = due + ${isDue('NEW')} - ${isDue('OLD')}, active = active + ${isActive('NEW')} - ${isActive('OLD')} WHERE seq = NEW.class;
END;
CREATE TRIGGER rollout_reclassed AFTER UPDATE OF class ON rollouts WHEN OLD.class <> NEW.class BEGIN
  ${countInClass('OLD', '-')}
  ${countInClass('NEW', '+')}
END;
CREATE TRIGGER rollout_deleted AFTER DELETE ON rollouts BEGIN
  UPDATE rollout_counts SET ${countAll((state) => `- (OLD.state = '${state}')`)} WHERE id = 1;
  ${countInClass('OLD', '-')}
END;
`;
