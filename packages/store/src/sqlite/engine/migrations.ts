// The numbered migrations of the SQLite store. Each takes a store from one schema to the next and is never edited once released: a
// new store gets the base schema and then runs them too, so both end with the same tables.

import { classTables, oneRowCounts, rareTriggers } from './class-schema.ts';
import { counterTables } from './counter-schema.ts';
import { evaluationTables } from './evaluation-schema.ts';

/** From each schema to the next. */
export const migrations: Readonly<Record<number, string>> = {
  3: `ALTER TABLE workers RENAME COLUMN pause_heard TO pause_seen;
ALTER TABLE batches ADD COLUMN rewards INTEGER NOT NULL DEFAULT 0;
ALTER TABLE batches ADD COLUMN reward_sum REAL NOT NULL DEFAULT 0;
`,
  4: `ALTER TABLE backends ADD COLUMN probe TEXT;
ALTER TABLE batches ADD COLUMN storm INTEGER NOT NULL DEFAULT 0;
ALTER TABLE batches ADD COLUMN storm_at INTEGER;
ALTER TABLE batches ADD COLUMN storm_reason TEXT;
`,
  5: classTables,
  6: counterTables,
  // A worker in quarantine takes only rollouts that lost several workers: those in line `suspect`.
  7: `ALTER TABLE rollouts ADD COLUMN lone_losses INTEGER NOT NULL DEFAULT 0;
ALTER TABLE workers ADD COLUMN quarantine INTEGER NOT NULL DEFAULT 0;
CREATE INDEX rollouts_suspect ON rollouts (losses, seq) WHERE state = 'queued' AND line = 'suspect';
`,
  // What was appended under a key, to compare a repeated request with; and how many times the task of a group was sampled again.
  8: `ALTER TABLE batch_appends ADD COLUMN n INTEGER;
ALTER TABLE batch_appends ADD COLUMN tasks INTEGER;
ALTER TABLE batch_appends ADD COLUMN closed INTEGER;
ALTER TABLE batch_tasks ADD COLUMN repeats INTEGER NOT NULL DEFAULT 0;
ALTER TABLE batch_groups ADD COLUMN repeats INTEGER NOT NULL DEFAULT 0;
`,
  9: `ALTER TABLE policy ADD COLUMN adapter TEXT;
ALTER TABLE policy ADD COLUMN cache_salt TEXT;
`,
  10: evaluationTables,
  // At most one row: when the date last stepped.
  11: `CREATE TABLE clock_jumps (at INTEGER NOT NULL) STRICT;
`,
  // A trajectory outside of its row has the key of its blob, and an empty body. The id of the store begins each key.
  12: `ALTER TABLE trajectories ADD COLUMN blob TEXT;
ALTER TABLE trajectories ADD COLUMN bytes INTEGER;
ALTER TABLE trajectories ADD COLUMN has_text INTEGER NOT NULL DEFAULT 1;
CREATE INDEX trajectories_text ON trajectories (seq) WHERE has_text = 1;
CREATE INDEX trajectories_blob ON trajectories (blob) WHERE blob IS NOT NULL;
CREATE TABLE blob_garbage (key TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TRIGGER trajectory_deleted AFTER DELETE ON trajectories WHEN OLD.blob IS NOT NULL BEGIN
  INSERT OR IGNORE INTO blob_garbage VALUES (OLD.blob);
END;
CREATE TABLE store_identity (id TEXT NOT NULL) STRICT;
INSERT INTO store_identity VALUES (lower(hex(randomblob(8))));
`,
  // What several servers agree on, and which machines cannot reach a backend.
  13: `CREATE TABLE duties (name TEXT PRIMARY KEY, holder TEXT NOT NULL, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE prorl (id INTEGER PRIMARY KEY CHECK (id = 1), running INTEGER NOT NULL, cleared_at INTEGER) STRICT;
INSERT INTO prorl VALUES (1, 0, NULL);
CREATE TABLE prorl_jobs (
  rollout TEXT PRIMARY KEY,
  name TEXT,
  digest TEXT NOT NULL,
  server TEXT NOT NULL,
  until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE backend_faults (
  backend TEXT NOT NULL,
  machine TEXT NOT NULL,
  since INTEGER NOT NULL,
  probes INTEGER NOT NULL,
  probe_at INTEGER NOT NULL,
  error TEXT NOT NULL,
  PRIMARY KEY (backend, machine)
) STRICT, WITHOUT ROWID;
`,
  14: oneRowCounts,
  15: rareTriggers,
  // Workers that died while a rollout was in evaluate, and how it ends if its next one does.
  16: `ALTER TABLE rollouts ADD COLUMN evaluate_losses INTEGER NOT NULL DEFAULT 0;
CREATE TABLE loss_endings (
  seq INTEGER PRIMARY KEY,
  attempt INTEGER NOT NULL,
  result TEXT NOT NULL,
  body BLOB NOT NULL,
  blob TEXT,
  bytes INTEGER
) STRICT;
CREATE TRIGGER loss_ending_deleted AFTER DELETE ON loss_endings WHEN OLD.blob IS NOT NULL BEGIN
  INSERT OR IGNORE INTO blob_garbage VALUES (OLD.blob);
END;
`,
  // Who paused, and which pause it was: a process of the version before leaves both as they are.
  17: `ALTER TABLE policy ADD COLUMN owner TEXT;
ALTER TABLE policy ADD COLUMN owned_pause INTEGER;
`,
  // What trainers post back.
  18: `CREATE TABLE trainer_steps (
  seq INTEGER PRIMARY KEY,
  run TEXT NOT NULL,
  step INTEGER NOT NULL,
  at INTEGER NOT NULL,
  samples INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX trainer_steps_run ON trainer_steps (run, step);
CREATE INDEX trainer_steps_at ON trainer_steps (at);
CREATE TABLE trainer_samples (
  rollout TEXT NOT NULL,
  step_seq INTEGER NOT NULL,
  branch INTEGER NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (rollout, step_seq, branch)
) STRICT, WITHOUT ROWID;
CREATE INDEX trainer_samples_step ON trainer_samples (step_seq);
`,
};
