// The tables of evaluations. A sample is a rollout with a row in `evaluation_samples`. What it measured is added to the counts of its
// task in the transaction that ends it, so a look at an evaluation reads its tasks' counts and no rollout.

// `begun` counts tasks whose samples were added, `ended` samples. Counts are separate from the tasks' text, which is large and never changes.
export const evaluationTables = `
CREATE TABLE evaluations (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  digest TEXT NOT NULL,
  state TEXT NOT NULL,
  plan TEXT NOT NULL,
  tasks INTEGER NOT NULL,
  begun INTEGER NOT NULL DEFAULT 0,
  ended INTEGER NOT NULL DEFAULT 0,
  turns INTEGER NOT NULL DEFAULT 0,
  sampled_tokens INTEGER NOT NULL DEFAULT 0,
  first_version INTEGER,
  last_version INTEGER,
  created_at INTEGER NOT NULL,
  ended_at INTEGER
) STRICT;
CREATE INDEX evaluations_state ON evaluations (state, seq);
CREATE INDEX evaluations_ended ON evaluations (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE evaluation_tasks (
  evaluation_seq INTEGER NOT NULL,
  task_index INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (evaluation_seq, task_index)
) STRICT, WITHOUT ROWID;
CREATE TABLE evaluation_scores (
  evaluation_seq INTEGER NOT NULL,
  task_index INTEGER NOT NULL,
  correct_at REAL NOT NULL,
  ended INTEGER NOT NULL DEFAULT 0,
  scored INTEGER NOT NULL DEFAULT 0,
  correct INTEGER NOT NULL DEFAULT 0,
  reward_sum REAL NOT NULL DEFAULT 0,
  PRIMARY KEY (evaluation_seq, task_index)
) STRICT, WITHOUT ROWID;
CREATE TABLE evaluation_samples (
  seq INTEGER PRIMARY KEY,
  evaluation_seq INTEGER NOT NULL,
  task_index INTEGER NOT NULL,
  is_replaced INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX evaluation_samples_task ON evaluation_samples (evaluation_seq, task_index);
CREATE TABLE evaluation_failures (
  evaluation_seq INTEGER NOT NULL,
  blame TEXT NOT NULL,
  code TEXT NOT NULL,
  samples INTEGER NOT NULL,
  scored INTEGER NOT NULL,
  PRIMARY KEY (evaluation_seq, blame, code)
) STRICT, WITHOUT ROWID;
CREATE TABLE evaluation_stops (
  evaluation_seq INTEGER NOT NULL,
  reason TEXT NOT NULL,
  samples INTEGER NOT NULL,
  PRIMARY KEY (evaluation_seq, reason)
) STRICT, WITHOUT ROWID;
`;
