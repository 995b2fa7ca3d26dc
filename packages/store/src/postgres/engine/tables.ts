// The tables of the PostgreSQL store: those of the SQLite store, with the same names and columns, so that both run the same
// statements.

import { batchTables } from './batch-tables.ts';
import { seq, text } from './columns.ts';

// Rows that change often leave room in their page for the next version. `passed_at`: since when a rollout was overtaken, because its siblings
// run on another machine.
export const tables = `
CREATE TABLE rollouts (
  ${seq},
  id ${text} NOT NULL UNIQUE,
  digest text NOT NULL,
  scenario ${text} NOT NULL,
  group_id ${text},
  state ${text} NOT NULL,
  attempt bigint NOT NULL DEFAULT 0,
  retries bigint NOT NULL DEFAULT 0,
  losses bigint NOT NULL DEFAULT 0,
  lone_losses bigint NOT NULL DEFAULT 0,
  worker ${text},
  backend ${text},
  backend_version bigint,
  context_tokens bigint NOT NULL DEFAULT 0,
  cancel_asked smallint NOT NULL DEFAULT 0,
  class bigint NOT NULL DEFAULT 0,
  line ${text} NOT NULL DEFAULT 'due',
  is_sibling smallint NOT NULL DEFAULT 0,
  created_at bigint NOT NULL,
  queued_at bigint NOT NULL,
  not_before bigint NOT NULL,
  ended_at bigint,
  result text,
  failure text,
  failures text NOT NULL DEFAULT '[]',
  passed_at bigint,
  evaluate_losses bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE INDEX rollouts_state ON rollouts (state, seq);
CREATE INDEX rollouts_scenario ON rollouts (scenario, seq);
CREATE INDEX rollouts_group ON rollouts (group_id, seq) WHERE group_id IS NOT NULL;
CREATE INDEX rollouts_worker ON rollouts (worker) WHERE worker IS NOT NULL;
CREATE INDEX rollouts_cancelled ON rollouts (worker) WHERE cancel_asked = 1;
CREATE INDEX rollouts_placed ON rollouts (backend) WHERE state = 'run' AND backend IS NOT NULL;
CREATE INDEX rollouts_ended ON rollouts (ended_at) WHERE ended_at IS NOT NULL AND is_sibling = 0;
CREATE INDEX rollouts_due ON rollouts (class, seq) WHERE state = 'queued' AND line = 'due';
CREATE INDEX rollouts_delayed ON rollouts (not_before) WHERE state = 'queued' AND line = 'delayed';
CREATE INDEX rollouts_suspect ON rollouts (losses, seq) WHERE state = 'queued' AND line = 'suspect';
CREATE TABLE submissions (seq bigint PRIMARY KEY, body text NOT NULL);
CREATE TABLE trajectories (
  seq bigint PRIMARY KEY,
  body bytea NOT NULL,
  blob ${text},
  bytes bigint,
  has_text smallint NOT NULL DEFAULT 1
);
ALTER TABLE trajectories ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX trajectories_text ON trajectories (seq) WHERE has_text = 1;
CREATE INDEX trajectories_blob ON trajectories (blob) WHERE blob IS NOT NULL;
CREATE TABLE blob_garbage (key ${text} PRIMARY KEY);
CREATE TABLE tombstones (id ${text} PRIMARY KEY, until bigint NOT NULL);
CREATE TABLE workers (
  id ${text} PRIMARY KEY,
  host text NOT NULL,
  pid bigint NOT NULL,
  started_at bigint NOT NULL,
  lease_until bigint NOT NULL,
  ended_at bigint,
  report text,
  pause_seen bigint NOT NULL DEFAULT 0,
  generating bigint NOT NULL DEFAULT 0,
  quarantine smallint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE TABLE policy (
  id smallint PRIMARY KEY CHECK (id = 1),
  state ${text} NOT NULL,
  mode ${text},
  pause bigint NOT NULL,
  flushes bigint NOT NULL,
  version bigint NOT NULL,
  since bigint NOT NULL,
  adapter text,
  cache_salt text,
  owner text,
  owned_pause bigint
);
INSERT INTO policy VALUES (1, 'running', NULL, 0, 0, 0, (1000 * extract(epoch FROM clock_timestamp()))::bigint);
CREATE TABLE backends (
  id ${text} PRIMARY KEY,
  url text NOT NULL,
  dialect ${text} NOT NULL,
  model text,
  api_key text,
  policy_version bigint NOT NULL,
  logprobs_mode ${text},
  probe text,
  state ${text} NOT NULL,
  broken_at bigint,
  probes bigint NOT NULL DEFAULT 0,
  probe_at bigint NOT NULL DEFAULT 0,
  error text,
  error_at bigint
) WITH (fillfactor = 50);
CREATE TABLE clock_jumps (at bigint NOT NULL);
CREATE TABLE store_identity (id text NOT NULL);
INSERT INTO store_identity VALUES (substr(md5(gen_random_uuid()::text), 1, 16));
${batchTables}`;
