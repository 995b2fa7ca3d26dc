// The tables of the SQLite store. What changes often (rollouts) is kept apart from what is large (submissions, trajectories),
// so that a transition rewrites a short row. Every table is STRICT, so a row has the types that its columns declare.

import { RolloutError } from '@millrace/protocol';
import { batchTables } from './batch-schema.ts';
import type { Session } from './session.ts';

const version = 3;

// `worker` is there exactly while a worker holds the rollout; `backend` from when it was placed, with the weights that it had
// then. What is in flight is counted from the rows, so that nothing can be forgotten in a counter. AUTOINCREMENT, so that no id or cursor is ever given twice,
// also after retention.
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
  failures TEXT NOT NULL DEFAULT '[]'
) STRICT;
CREATE INDEX rollouts_state ON rollouts (state, seq, not_before);
CREATE INDEX rollouts_scenario ON rollouts (scenario, seq);
CREATE INDEX rollouts_group ON rollouts (group_id, seq) WHERE group_id IS NOT NULL;
CREATE INDEX rollouts_worker ON rollouts (worker) WHERE worker IS NOT NULL;
CREATE INDEX rollouts_placed ON rollouts (backend, context_tokens) WHERE state = 'run' AND backend IS NOT NULL;
CREATE INDEX rollouts_ended ON rollouts (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE submissions (seq INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
CREATE TABLE trajectories (seq INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
CREATE TABLE tombstones (id TEXT PRIMARY KEY, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE workers (
  id TEXT PRIMARY KEY,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  lease_until INTEGER NOT NULL,
  ended_at INTEGER,
  report TEXT,
  pause_heard INTEGER NOT NULL DEFAULT 0,
  generating INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE policy (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  state TEXT NOT NULL,
  mode TEXT,
  pause INTEGER NOT NULL,
  flushes INTEGER NOT NULL,
  version INTEGER NOT NULL,
  since INTEGER NOT NULL
) STRICT;
INSERT INTO policy VALUES (1, 'running', NULL, 0, 0, 0, CAST(1000 * unixepoch('subsec') AS INTEGER));
CREATE TABLE backends (
  id TEXT PRIMARY KEY,
  url TEXT NOT NULL,
  dialect TEXT NOT NULL,
  model TEXT,
  api_key TEXT,
  policy_version INTEGER NOT NULL,
  logprobs_mode TEXT,
  state TEXT NOT NULL,
  broken_at INTEGER,
  probes INTEGER NOT NULL DEFAULT 0,
  probe_at INTEGER NOT NULL DEFAULT 0,
  error TEXT,
  error_at INTEGER
) STRICT;
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
${batchTables}`;

/** Makes the tables where there are none, and commits. Throws when another version of Millrace made the file. */
export function makeTables(session: Session): void {
  session.exec('BEGIN IMMEDIATE');
  const found = session.one<{ user_version: number }>('PRAGMA user_version')?.user_version ?? 0;
  if (found !== 0 && found !== version)
    throw new RolloutError('internal', `the store has schema ${found}, and this Millrace reads schema ${version}`);
  session.exec(found === version ? 'COMMIT' : `${tables} PRAGMA user_version = ${version}; COMMIT`);
}
