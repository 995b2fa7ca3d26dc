// The tables of batches. A rollout of a group has one row in `siblings` with the batch that sampled it, so waste stays with that
// batch when its groups are carried over to the next.

// `line` counts all tasks ever added to the batch's queue, and `taken` those removed from it. A group's `place` is its seq in the
// stream of its batch; a sibling's is its position in a delivered group. `rewards` and `reward_sum` cover judged groups.
// `storm` counts the last groups in a row that failed without blame on their tasks. `batch_appends` has what was appended under a key, to
// compare a repeated request with; `repeats` is how many times a task was sampled again. The counters of groups by state are kept by triggers,
// what was sampled but not delivered by `operations/waste.ts`: with them, reading a batch costs the same however much it has sampled.
export const batchTables = `
CREATE TABLE batches (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  digest TEXT NOT NULL,
  series TEXT,
  recipe TEXT NOT NULL,
  state TEXT NOT NULL,
  plan TEXT NOT NULL,
  target INTEGER NOT NULL,
  given INTEGER NOT NULL DEFAULT 0,
  line INTEGER NOT NULL DEFAULT 0,
  taken INTEGER NOT NULL DEFAULT 0,
  begun INTEGER NOT NULL DEFAULT 0,
  carried INTEGER NOT NULL DEFAULT 0,
  delivered INTEGER NOT NULL DEFAULT 0,
  closed INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  ended_at INTEGER,
  rewards INTEGER NOT NULL DEFAULT 0,
  reward_sum REAL NOT NULL DEFAULT 0,
  storm INTEGER NOT NULL DEFAULT 0,
  storm_at INTEGER,
  storm_reason TEXT
) STRICT;
CREATE INDEX batches_state ON batches (state, seq);
CREATE INDEX batches_series ON batches (series, seq) WHERE series IS NOT NULL;
CREATE TABLE batch_tasks (
  batch_seq INTEGER NOT NULL,
  n INTEGER NOT NULL,
  task_index INTEGER NOT NULL,
  body TEXT NOT NULL,
  repeats INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (batch_seq, n)
) STRICT, WITHOUT ROWID;
CREATE TABLE batch_appends (
  batch_seq INTEGER NOT NULL,
  key TEXT NOT NULL,
  n INTEGER,
  tasks INTEGER,
  closed INTEGER,
  PRIMARY KEY (batch_seq, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE batch_groups (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  batch_seq INTEGER NOT NULL,
  state TEXT NOT NULL,
  place INTEGER,
  task_index INTEGER NOT NULL,
  task TEXT NOT NULL,
  carried INTEGER NOT NULL DEFAULT 0,
  replacements INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  ended_at INTEGER,
  repeats INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX batch_groups_state ON batch_groups (batch_seq, state, place);
CREATE TABLE siblings (
  seq INTEGER PRIMARY KEY,
  group_seq INTEGER NOT NULL,
  batch_seq INTEGER NOT NULL,
  place INTEGER
) STRICT;
CREATE INDEX siblings_group ON siblings (group_seq, place);
CREATE INDEX siblings_batch ON siblings (batch_seq);
CREATE TABLE task_cursors (name TEXT PRIMARY KEY, position INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE consumers (
  batch_seq INTEGER NOT NULL,
  name TEXT NOT NULL,
  through INTEGER NOT NULL,
  PRIMARY KEY (batch_seq, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE outbox (
  batch_seq INTEGER PRIMARY KEY,
  url TEXT NOT NULL,
  secret TEXT,
  sent INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  not_before INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE group_counts (
  batch_seq INTEGER NOT NULL,
  state TEXT NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY (batch_seq, state)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER group_added AFTER INSERT ON batch_groups BEGIN
  INSERT INTO group_counts VALUES (NEW.batch_seq, NEW.state, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER group_moved AFTER UPDATE OF state, batch_seq ON batch_groups BEGIN
  UPDATE group_counts SET n = n - 1 WHERE batch_seq = OLD.batch_seq AND state = OLD.state;
  INSERT INTO group_counts VALUES (NEW.batch_seq, NEW.state, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TABLE batch_waste (
  batch_seq INTEGER NOT NULL,
  kind TEXT NOT NULL,
  rollouts INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  ms INTEGER NOT NULL,
  PRIMARY KEY (batch_seq, kind)
) STRICT, WITHOUT ROWID;
`;
