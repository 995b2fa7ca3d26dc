// The tables of the SQLite store. What changes often (rollouts) is separate from what is large (submissions, trajectories), so a
// transition rewrites a short row. Every table is STRICT, so a row has the types that its columns declare.

import { messageOf, RolloutError } from '@millrace/protocol/plain';
import { batchTables } from './batch-schema.ts';
import { classTables } from './class-schema.ts';
import type { Statements } from './connection.ts';
import { evaluationTables } from './evaluation-schema.ts';
import { migrations } from './migrations.ts';

/** The schema of `tables`; the migrations from here on apply to new stores too. */
const baseVersion = 17;

// The `line` of a queued rollout: `due` can be claimed, `delayed` not before its `not_before`; a worker in quarantine takes only rollouts that
// lost several workers, those in line `suspect`. `evaluate_losses`: workers that died while it was in evaluate, and `loss_endings`: how it ends
// if its next one does. `worker` is set exactly while a worker holds the rollout; `backend` and the version of its weights are set once it is placed.
// Rollouts in flight are counted from the rows, so no counter can drift. AUTOINCREMENT ensures that no id or cursor is ever
// reused, even after retention. A trajectory outside of its row has the key of its blob, and an empty body. The id of the store begins each
// key. Rollouts of a batch are deleted with it, so the index that retention reads leaves them out. `clock_jumps` has at most one row: when the
// date last stepped.
const tables = `
CREATE TABLE rollouts (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  digest TEXT NOT NULL,
  scenario TEXT NOT NULL,
  group_id TEXT,
  state TEXT NOT NULL,
  attempt INTEGER NOT NULL DEFAULT 0,
  retries INTEGER NOT NULL DEFAULT 0,
  losses INTEGER NOT NULL DEFAULT 0,
  worker TEXT,
  backend TEXT,
  backend_version INTEGER,
  context_tokens INTEGER NOT NULL DEFAULT 0,
  cancel_asked INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  queued_at INTEGER NOT NULL,
  not_before INTEGER NOT NULL,
  ended_at INTEGER,
  result TEXT,
  failure TEXT,
  failures TEXT NOT NULL DEFAULT '[]',
  class INTEGER NOT NULL DEFAULT 0,
  line TEXT NOT NULL DEFAULT 'due',
  is_sibling INTEGER NOT NULL DEFAULT 0,
  lone_losses INTEGER NOT NULL DEFAULT 0,
  evaluate_losses INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX rollouts_state ON rollouts (state, seq, not_before);
CREATE INDEX rollouts_scenario ON rollouts (scenario, seq);
CREATE INDEX rollouts_group ON rollouts (group_id, seq) WHERE group_id IS NOT NULL;
CREATE INDEX rollouts_worker ON rollouts (worker) WHERE worker IS NOT NULL;
CREATE INDEX rollouts_placed ON rollouts (backend, context_tokens) WHERE state = 'run' AND backend IS NOT NULL;
CREATE INDEX rollouts_ended ON rollouts (ended_at) WHERE ended_at IS NOT NULL AND is_sibling = 0;
CREATE INDEX rollouts_due ON rollouts (class, seq) WHERE state = 'queued' AND line = 'due';
CREATE INDEX rollouts_delayed ON rollouts (not_before) WHERE state = 'queued' AND line = 'delayed';
CREATE INDEX rollouts_suspect ON rollouts (losses, seq) WHERE state = 'queued' AND line = 'suspect';
CREATE TABLE submissions (seq INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
CREATE TABLE trajectories (
  seq INTEGER PRIMARY KEY,
  body BLOB NOT NULL,
  blob TEXT,
  bytes INTEGER,
  has_text INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX trajectories_text ON trajectories (seq) WHERE has_text = 1;
CREATE INDEX trajectories_blob ON trajectories (blob) WHERE blob IS NOT NULL;
CREATE TABLE loss_endings (
  seq INTEGER PRIMARY KEY,
  attempt INTEGER NOT NULL,
  result TEXT NOT NULL,
  body BLOB NOT NULL,
  blob TEXT,
  bytes INTEGER
) STRICT;
CREATE TABLE blob_garbage (key TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TRIGGER trajectory_deleted AFTER DELETE ON trajectories WHEN OLD.blob IS NOT NULL BEGIN
  INSERT OR IGNORE INTO blob_garbage VALUES (OLD.blob);
END;
CREATE TRIGGER loss_ending_deleted AFTER DELETE ON loss_endings WHEN OLD.blob IS NOT NULL BEGIN
  INSERT OR IGNORE INTO blob_garbage VALUES (OLD.blob);
END;
CREATE TABLE store_identity (id TEXT NOT NULL) STRICT;
INSERT INTO store_identity VALUES (lower(hex(randomblob(8))));
CREATE TABLE clock_jumps (at INTEGER NOT NULL) STRICT;
CREATE TABLE tombstones (id TEXT PRIMARY KEY, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE workers (
  id TEXT PRIMARY KEY,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  lease_until INTEGER NOT NULL,
  ended_at INTEGER,
  report TEXT,
  pause_seen INTEGER NOT NULL DEFAULT 0,
  generating INTEGER NOT NULL DEFAULT 0,
  quarantine INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE policy (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  state TEXT NOT NULL,
  mode TEXT,
  pause INTEGER NOT NULL,
  flushes INTEGER NOT NULL,
  version INTEGER NOT NULL,
  since INTEGER NOT NULL,
  adapter TEXT,
  cache_salt TEXT
) STRICT;
INSERT INTO policy VALUES (1, 'running', NULL, 0, 0, 0, CAST(1000 * unixepoch('subsec') AS INTEGER), NULL, NULL);
CREATE TABLE backends (
  id TEXT PRIMARY KEY,
  url TEXT NOT NULL,
  dialect TEXT NOT NULL,
  model TEXT,
  api_key TEXT,
  policy_version INTEGER NOT NULL,
  logprobs_mode TEXT,
  probe TEXT,
  state TEXT NOT NULL,
  broken_at INTEGER,
  probes INTEGER NOT NULL DEFAULT 0,
  probe_at INTEGER NOT NULL DEFAULT 0,
  error TEXT,
  error_at INTEGER
) STRICT;
CREATE TABLE backend_faults (
  backend TEXT NOT NULL,
  machine TEXT NOT NULL,
  since INTEGER NOT NULL,
  probes INTEGER NOT NULL,
  probe_at INTEGER NOT NULL,
  error TEXT NOT NULL,
  PRIMARY KEY (backend, machine)
) STRICT, WITHOUT ROWID;
CREATE TABLE duties (name TEXT PRIMARY KEY, holder TEXT NOT NULL, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE prorl (id INTEGER PRIMARY KEY CHECK (id = 1), running INTEGER NOT NULL, cleared_at INTEGER) STRICT;
INSERT INTO prorl VALUES (1, 0, NULL);
CREATE TABLE prorl_jobs (
  rollout TEXT PRIMARY KEY,
  name TEXT,
  digest TEXT NOT NULL,
  server TEXT NOT NULL,
  until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  rollout_id TEXT,
  group_id TEXT,
  worker_id TEXT,
  backend_id TEXT,
  data TEXT NOT NULL
) STRICT;
${batchTables}${evaluationTables}${classTables}`;

const newestVersion = Math.max(...Object.keys(migrations).map(Number)) + 1;

/**
 * Creates the tables, or migrates those of an older schema, in one transaction: a migration that fails leaves the file as it was.
 * Throws for a schema that this version does not know.
 */
export function makeTables(statements: Statements): void {
  statements.exec('BEGIN IMMEDIATE');
  try {
    const found = statements.one<{ user_version: number }>('PRAGMA user_version')?.user_version ?? 0;
    checkVersion(found);
    if (found === 0) statements.exec(tables);
    for (let version = found === 0 ? baseVersion : found; version < newestVersion; version += 1) migrate(statements, version);
    statements.exec('COMMIT');
  } catch (error) {
    rollBack(statements);
    throw error;
  }
}

function rollBack(statements: Statements): void {
  try {
    statements.exec('ROLLBACK');
  } catch {} // SQLite has already rolled it back
}

function migrate(statements: Statements, version: number): void {
  try {
    statements.exec(`${migrations[version]} PRAGMA user_version = ${version + 1}`);
  } catch (error) {
    const message = `the migration from schema ${version} to ${version + 1} failed, and the store was left as it was: ${messageOf(error)}`;
    throw new RolloutError('internal', message, { cause: error });
  }
}

/** Whether this version of Millrace wrote it, or would write it so. */
export function isNewest(found: number): boolean {
  return found === newestVersion;
}

export function checkVersion(found: number): void {
  if (found === 0 || found === newestVersion || migrations[found] !== undefined) return;
  const what = `the store has schema ${found}, and this version of Millrace knows schema ${newestVersion}`;
  const advice =
    found > newestVersion
      ? 'a newer version wrote it: start that version, or restore a backup from before the upgrade'
      : 'it is too old to be migrated: start a version in between first';
  throw new RolloutError('internal', `${what}; ${advice}`);
}
