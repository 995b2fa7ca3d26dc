// The numbered migrations of the SQLite store. Each takes a store from one schema to the next and is never edited once released: a
// new store gets the base schema and then runs them too, so both end with the same tables.

/** From each schema to the next. */
export const migrations: Readonly<Record<number, string>> = {
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
  // What each finished turn of a running rollout added.
  19: `CREATE TABLE turn_log (
  seq INTEGER NOT NULL,
  turn INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (seq, turn)
) STRICT;
`,
};
