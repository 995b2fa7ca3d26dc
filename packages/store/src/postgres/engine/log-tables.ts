// The event log and the counts of rollouts: the rows that every transaction changes. They are changed last, in the statement that
// commits, under the lock of the one row of `event_log`. So ids increase in the order of commits, no transaction waits for these rows
// while it holds them, and the lock is held for the time of one commit.

import { seq, text } from './columns.ts';

// A trigger adds up what a transaction changes in the setting millrace.pending, which a rolled back savepoint restores. Its keys are
// class, state and line. Only rollouts that are queued or hold a slot count for their class.
export const logTables = `
CREATE TABLE event_log (last bigint NOT NULL);
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

CREATE FUNCTION read_pending() RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT coalesce(nullif(current_setting('millrace.pending', true), ''), '{}')::jsonb
$$;
CREATE FUNCTION add_pending(class bigint, state text, line text, by bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  pending jsonb := read_pending();
  key text := CASE WHEN state IN ('queued', 'init', 'ready', 'run') THEN class ELSE 0 END || ' ' || state || ' ' || line;
BEGIN
  pending := pending || jsonb_build_object(key, coalesce((pending ->> key)::bigint, 0) + by);
  PERFORM set_config('millrace.pending', pending::text, true);
END
$$;
CREATE FUNCTION count_rollout() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN PERFORM add_pending(OLD.class, OLD.state, OLD.line, -1); END IF;
  IF TG_OP <> 'DELETE' THEN PERFORM add_pending(NEW.class, NEW.state, NEW.line, 1); END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER rollout_added AFTER INSERT OR DELETE ON rollouts FOR EACH ROW EXECUTE FUNCTION count_rollout();
CREATE TRIGGER rollout_moved AFTER UPDATE OF state, class, line ON rollouts FOR EACH ROW
  WHEN (OLD.state <> NEW.state OR OLD.class <> NEW.class OR OLD.line <> NEW.line) EXECUTE FUNCTION count_rollout();
CREATE VIEW state_counts AS SELECT state, n + coalesce((SELECT sum(value::bigint) FROM jsonb_each_text(read_pending())
  WHERE split_part(key, ' ', 2) = state), 0)::bigint AS n FROM state_totals;
CREATE VIEW pending_classes AS SELECT split_part(key, ' ', 1)::bigint AS class,
    coalesce(sum(value::bigint) FILTER (WHERE split_part(key, ' ', 2) = 'queued'), 0)::bigint AS queued,
    coalesce(sum(value::bigint) FILTER (WHERE split_part(key, ' ', 2) = 'queued' AND split_part(key, ' ', 3) = 'due'), 0)::bigint AS due,
    coalesce(sum(value::bigint) FILTER (WHERE split_part(key, ' ', 2) <> 'queued'), 0)::bigint AS active
  FROM jsonb_each_text(read_pending()) WHERE split_part(key, ' ', 1) <> '0' GROUP BY 1;
CREATE VIEW due_classes AS SELECT c.seq, c.rank, c.weight, c.served, c.active + coalesce(d.active, 0) AS active, c.due + coalesce(d.due, 0) AS due
  FROM classes c LEFT JOIN pending_classes d ON d.class = c.seq WHERE c.due + coalesce(d.due, 0) > 0;

CREATE FUNCTION flush_counts() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  pending jsonb := read_pending();
BEGIN
  IF pending = '{}' THEN RETURN; END IF;
  UPDATE state_totals t SET n = t.n + d.n
    FROM (SELECT split_part(key, ' ', 2) AS state, sum(value::bigint) AS n FROM jsonb_each_text(pending) GROUP BY 1) d
    WHERE t.state = d.state AND d.n <> 0;
  UPDATE classes c SET queued = c.queued + d.queued, due = c.due + d.due, active = c.active + d.active
    FROM pending_classes d WHERE c.seq = d.class AND (d.queued <> 0 OR d.due <> 0 OR d.active <> 0);
  PERFORM set_config('millrace.pending', '', true);
END
$$;
CREATE FUNCTION append_log(entries json, served_classes bigint[], channel text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  added bigint := json_array_length(entries);
  newest bigint;
BEGIN
  IF added = 0 AND served_classes = '{}' AND read_pending() = '{}' THEN RETURN; END IF;
  UPDATE event_log SET last = last + added RETURNING last INTO newest;
  INSERT INTO events (id, at, kind, rollout_id, group_id, worker_id, backend_id, data)
    SELECT newest - added + n, (e ->> 0)::bigint, e ->> 1, e ->> 2, e ->> 3, e ->> 4, e ->> 5, e ->> 6
    FROM json_array_elements(entries) WITH ORDINALITY AS entry (e, n);
  PERFORM flush_counts();
  UPDATE classes SET served = newest WHERE seq = ANY (served_classes);
  IF added > 0 THEN PERFORM pg_notify(channel, ''); END IF;
END
$$;
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
