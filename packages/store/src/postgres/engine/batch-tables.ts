// The tables of batches and evaluations.

import { seq, text } from './columns.ts';

export const batchTables = `
CREATE TABLE batches (
  ${seq},
  id ${text} NOT NULL UNIQUE,
  digest text NOT NULL,
  series ${text},
  recipe text NOT NULL,
  state ${text} NOT NULL,
  plan text NOT NULL,
  target bigint NOT NULL,
  given bigint NOT NULL DEFAULT 0,
  line bigint NOT NULL DEFAULT 0,
  taken bigint NOT NULL DEFAULT 0,
  begun bigint NOT NULL DEFAULT 0,
  carried bigint NOT NULL DEFAULT 0,
  delivered bigint NOT NULL DEFAULT 0,
  closed smallint NOT NULL,
  created_at bigint NOT NULL,
  ended_at bigint,
  rewards bigint NOT NULL DEFAULT 0,
  reward_sum double precision NOT NULL DEFAULT 0,
  storm bigint NOT NULL DEFAULT 0,
  storm_at bigint,
  storm_reason text
);
CREATE INDEX batches_state ON batches (state, seq);
CREATE INDEX batches_series ON batches (series, seq) WHERE series IS NOT NULL;
CREATE TABLE batch_tasks (
  batch_seq bigint NOT NULL,
  n bigint NOT NULL,
  task_index bigint NOT NULL,
  body text NOT NULL,
  repeats bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (batch_seq, n)
);
CREATE TABLE batch_appends (
  batch_seq bigint NOT NULL,
  key ${text} NOT NULL,
  n bigint,
  tasks bigint,
  closed smallint,
  PRIMARY KEY (batch_seq, key)
);
CREATE TABLE batch_groups (
  ${seq},
  id ${text} NOT NULL UNIQUE,
  batch_seq bigint NOT NULL,
  state ${text} NOT NULL,
  place bigint,
  task_index bigint NOT NULL,
  task text NOT NULL,
  carried smallint NOT NULL DEFAULT 0,
  replacements bigint NOT NULL DEFAULT 0,
  created_at bigint NOT NULL,
  ended_at bigint,
  repeats bigint NOT NULL DEFAULT 0
);
CREATE INDEX batch_groups_state ON batch_groups (batch_seq, state, place);
CREATE TABLE siblings (seq bigint PRIMARY KEY, group_seq bigint NOT NULL, batch_seq bigint NOT NULL, place bigint);
CREATE INDEX siblings_group ON siblings (group_seq, place);
CREATE INDEX siblings_batch ON siblings (batch_seq, seq);
CREATE TABLE group_counts (
  batch_seq bigint NOT NULL,
  state ${text} NOT NULL,
  n bigint NOT NULL,
  PRIMARY KEY (batch_seq, state)
);
CREATE TABLE batch_waste (
  batch_seq bigint NOT NULL,
  kind ${text} NOT NULL,
  rollouts bigint NOT NULL,
  tokens bigint NOT NULL,
  ms bigint NOT NULL,
  PRIMARY KEY (batch_seq, kind)
);
CREATE TABLE task_cursors (name ${text} PRIMARY KEY, position bigint NOT NULL);
CREATE TABLE consumers (batch_seq bigint NOT NULL, name ${text} NOT NULL, through bigint NOT NULL, PRIMARY KEY (batch_seq, name));
CREATE TABLE outbox (
  batch_seq bigint PRIMARY KEY,
  url text NOT NULL,
  secret text,
  sent bigint NOT NULL DEFAULT 0,
  attempts bigint NOT NULL DEFAULT 0,
  not_before bigint NOT NULL DEFAULT 0
);
CREATE TABLE evaluations (
  ${seq},
  id ${text} NOT NULL UNIQUE,
  digest text NOT NULL,
  state ${text} NOT NULL,
  plan text NOT NULL,
  tasks bigint NOT NULL,
  begun bigint NOT NULL DEFAULT 0,
  ended bigint NOT NULL DEFAULT 0,
  turns bigint NOT NULL DEFAULT 0,
  sampled_tokens bigint NOT NULL DEFAULT 0,
  first_version bigint,
  last_version bigint,
  created_at bigint NOT NULL,
  ended_at bigint
);
CREATE INDEX evaluations_state ON evaluations (state, seq);
CREATE INDEX evaluations_ended ON evaluations (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE evaluation_tasks (
  evaluation_seq bigint NOT NULL,
  task_index bigint NOT NULL,
  body text NOT NULL,
  PRIMARY KEY (evaluation_seq, task_index)
);
CREATE TABLE evaluation_scores (
  evaluation_seq bigint NOT NULL,
  task_index bigint NOT NULL,
  correct_at double precision NOT NULL,
  ended bigint NOT NULL DEFAULT 0,
  scored bigint NOT NULL DEFAULT 0,
  correct bigint NOT NULL DEFAULT 0,
  reward_sum double precision NOT NULL DEFAULT 0,
  PRIMARY KEY (evaluation_seq, task_index)
);
CREATE TABLE evaluation_samples (
  seq bigint PRIMARY KEY,
  evaluation_seq bigint NOT NULL,
  task_index bigint NOT NULL,
  is_replaced smallint NOT NULL DEFAULT 0
);
CREATE INDEX evaluation_samples_task ON evaluation_samples (evaluation_seq, task_index);
CREATE TABLE evaluation_failures (
  evaluation_seq bigint NOT NULL,
  blame ${text} NOT NULL,
  code ${text} NOT NULL,
  samples bigint NOT NULL,
  scored bigint NOT NULL,
  PRIMARY KEY (evaluation_seq, blame, code)
);
CREATE TABLE evaluation_stops (
  evaluation_seq bigint NOT NULL,
  reason ${text} NOT NULL,
  samples bigint NOT NULL,
  PRIMARY KEY (evaluation_seq, reason)
);
`;
