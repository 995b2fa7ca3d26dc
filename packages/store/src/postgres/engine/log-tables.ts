// The event log and the counts of rollouts, which the process that numbers the log changes; see `sequencer-tables.ts`.

import { seq, text } from './columns.ts';

// `read_from`, `next_from` and `next_xid` say below which number nothing can appear in the inbox; `awake_until`: how long the sequencer looks
// every few milliseconds.
export const logTables = `
CREATE TABLE event_log (
  last bigint NOT NULL,
  read_from bigint NOT NULL DEFAULT 0,
  next_from bigint NOT NULL DEFAULT 0,
  next_xid xid8 NOT NULL DEFAULT '0',
  awake_until timestamptz NOT NULL DEFAULT 'epoch'
);
INSERT INTO event_log VALUES (0);
CREATE TABLE events (
  id bigint PRIMARY KEY,
  at bigint NOT NULL,
  kind ${text} NOT NULL,
  rollout_id ${text},
  group_id ${text},
  worker_id ${text},
  backend_id ${text},
  data text NOT NULL
);
CREATE TABLE state_totals (state ${text} PRIMARY KEY, n bigint NOT NULL) WITH (fillfactor = 50);
INSERT INTO state_totals SELECT state, 0
  FROM unnest(ARRAY['queued', 'init', 'ready', 'run', 'evaluate', 'done', 'failed', 'cancelled']) AS states (state);
CREATE TABLE classes (
  ${seq},
  kind ${text} NOT NULL,
  name ${text} NOT NULL,
  rank bigint NOT NULL,
  weight double precision NOT NULL,
  queued bigint NOT NULL DEFAULT 0,
  due bigint NOT NULL DEFAULT 0,
  active bigint NOT NULL DEFAULT 0,
  served bigint NOT NULL DEFAULT 0,
  share double precision GENERATED ALWAYS AS (active / weight) STORED,
  wanted bigint GENERATED ALWAYS AS (queued + active) STORED,
  UNIQUE (kind, name, rank)
) WITH (fillfactor = 50);
INSERT INTO classes (kind, name, rank, weight) VALUES ('plain', '', 0, 1);
CREATE INDEX classes_busy ON classes (rank DESC, seq) WHERE wanted > 0;
`;

// JSON is stored as text. Only numbers are read from it, so characters that PostgreSQL's JSON cannot hold are replaced by a slash.
export const functions = `
CREATE FUNCTION json_extract(document text, path text) RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
  SELECT (regexp_replace(document, '\\\\u(0000|d[89a-f][0-9a-f]{2})', '/', 'gi')::json #>> string_to_array(substr(path, 3), '.'))::double precision
$$;
CREATE FUNCTION count_group() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN UPDATE group_counts SET n = n - 1 WHERE batch_seq = OLD.batch_seq AND state = OLD.state; END IF;
  INSERT INTO group_counts VALUES (NEW.batch_seq, NEW.state, 1) ON CONFLICT (batch_seq, state) DO UPDATE SET n = group_counts.n + 1;
  RETURN NULL;
END
$$;
CREATE TRIGGER group_added AFTER INSERT OR UPDATE OF state, batch_seq ON batch_groups FOR EACH ROW EXECUTE FUNCTION count_group();
CREATE FUNCTION note_garbage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO blob_garbage VALUES (OLD.blob) ON CONFLICT DO NOTHING;
  RETURN NULL;
END
$$;
CREATE TRIGGER trajectory_deleted AFTER DELETE ON trajectories FOR EACH ROW WHEN (OLD.blob IS NOT NULL) EXECUTE FUNCTION note_garbage();
`;
