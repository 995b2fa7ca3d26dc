// The third schema: notifications that do not grow with the number of workers, and how many rollouts run on each backend, with the
// length of their contexts together, kept as rollouts change. Like the other counts, they are changed last, under the lock of the log. Processes of the versions before go on: a trigger counts for them.

import { text } from './columns.ts';

// A notification wakes the server's processes for all connections that listen, so with many workers there are fewer of them. Each carries
// the time for which no other follows: who gets it looks once more after that. Called under the lock of the log.
const announcements = `
CREATE TABLE notices (channel ${text} PRIMARY KEY, at timestamptz NOT NULL) WITH (fillfactor = 50);
CREATE FUNCTION announce(name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  passed double precision := (SELECT 1000 * extract(epoch FROM clock_timestamp() - at) FROM notices WHERE channel = name);
  pause double precision := 20;
BEGIN
  IF passed >= 0 AND passed < pause THEN RETURN; END IF;
  pause := pause + 0.5 * (SELECT count(*) FROM workers WHERE ended_at IS NULL);
  IF passed >= 0 AND passed < pause THEN RETURN; END IF;
  INSERT INTO notices VALUES (name, clock_timestamp()) ON CONFLICT (channel) DO UPDATE SET at = excluded.at;
  PERFORM pg_notify(name, ceil(pause)::text);
END
$$;
`;

// What a transaction changes is added up in the setting millrace.pending_loads: backend to [rollouts, tokens]. Only `flush_loads` writes
// the totals: another statement that did would hold their rows while it waits for the lock of the log. The triggers come before the
// first totals, because making them waits for all writers. Transactions that wait for the log wait in a line for a lock of its own: each of
// many that waited for its row would read all versions of it that were written meanwhile.
export const loadTables = `
CREATE TABLE backend_totals (id ${text} PRIMARY KEY, in_flight bigint NOT NULL, tokens bigint NOT NULL) WITH (fillfactor = 50);
CREATE FUNCTION read_pending_loads() RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT coalesce(nullif(current_setting('millrace.pending_loads', true), ''), '{}')::jsonb
$$;
CREATE FUNCTION add_pending_load(backend text, n bigint, tokens bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  pending jsonb := read_pending_loads();
  known jsonb := coalesce(pending -> backend, '[0, 0]');
BEGIN
  pending := pending || jsonb_build_object(backend, jsonb_build_array((known ->> 0)::bigint + n, (known ->> 1)::bigint + tokens));
  PERFORM set_config('millrace.pending_loads', pending::text, true);
END
$$;
CREATE FUNCTION count_load() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  was boolean := TG_OP <> 'INSERT' AND OLD.state = 'run' AND OLD.backend IS NOT NULL;
  is_now boolean := TG_OP <> 'DELETE' AND NEW.state = 'run' AND NEW.backend IS NOT NULL;
BEGIN
  IF was AND is_now AND OLD.backend = NEW.backend THEN
    PERFORM add_pending_load(NEW.backend, 0, NEW.context_tokens - OLD.context_tokens);
    RETURN NULL;
  END IF;
  IF was THEN PERFORM add_pending_load(OLD.backend, -1, -OLD.context_tokens); END IF;
  IF is_now THEN PERFORM add_pending_load(NEW.backend, 1, NEW.context_tokens); END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER load_moved AFTER UPDATE OF state, backend, context_tokens ON rollouts FOR EACH ROW
  WHEN ((OLD.state = 'run' AND OLD.backend IS NOT NULL OR NEW.state = 'run' AND NEW.backend IS NOT NULL)
    AND (OLD.state, OLD.backend, OLD.context_tokens) IS DISTINCT FROM (NEW.state, NEW.backend, NEW.context_tokens))
  EXECUTE FUNCTION count_load();
CREATE TRIGGER load_added AFTER INSERT ON rollouts FOR EACH ROW
  WHEN (NEW.state = 'run' AND NEW.backend IS NOT NULL) EXECUTE FUNCTION count_load();
CREATE TRIGGER load_deleted AFTER DELETE ON rollouts FOR EACH ROW
  WHEN (OLD.state = 'run' AND OLD.backend IS NOT NULL) EXECUTE FUNCTION count_load();
INSERT INTO backend_totals SELECT backend, count(*), sum(context_tokens) FROM rollouts
  WHERE state = 'run' AND backend IS NOT NULL GROUP BY backend;

CREATE VIEW pending_loads AS SELECT key COLLATE "C" AS id, (value ->> 0)::bigint AS in_flight, (value ->> 1)::bigint AS tokens
  FROM jsonb_each(read_pending_loads());
CREATE VIEW backend_loads AS SELECT id, sum(in_flight)::bigint AS in_flight, sum(tokens)::bigint AS tokens
  FROM (SELECT id, in_flight, tokens FROM backend_totals UNION ALL SELECT id, in_flight, tokens FROM pending_loads) AS parts
  GROUP BY id HAVING sum(in_flight) > 0;
CREATE FUNCTION flush_loads() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  least bigint;
  known bigint;
BEGIN
  IF read_pending_loads() = '{}' THEN RETURN; END IF;
  WITH changed AS (UPDATE backend_totals t SET in_flight = t.in_flight + p.in_flight, tokens = t.tokens + p.tokens
    FROM pending_loads p WHERE t.id = p.id RETURNING t.in_flight) SELECT min(in_flight), count(*) INTO least, known FROM changed;
  IF known < (SELECT count(*) FROM pending_loads) THEN
    INSERT INTO backend_totals SELECT id, in_flight, tokens FROM pending_loads WHERE in_flight > 0 ON CONFLICT DO NOTHING;
  END IF;
  IF least = 0 THEN DELETE FROM backend_totals WHERE in_flight = 0; END IF;
  PERFORM set_config('millrace.pending_loads', '', true);
END
$$;
CREATE OR REPLACE FUNCTION append_log(entries json, served_classes bigint[], channel text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  added bigint := json_array_length(entries);
  newest bigint;
BEGIN
  IF added = 0 AND served_classes = '{}' AND read_pending() = '{}' AND read_pending_loads() = '{}' THEN RETURN; END IF;
  PERFORM pg_advisory_xact_lock(hashtext(current_schema()), 3);
  UPDATE event_log SET last = last + added RETURNING last INTO newest;
  INSERT INTO events (id, at, kind, rollout_id, group_id, worker_id, backend_id, data)
    SELECT newest - added + n, (e ->> 0)::bigint, e ->> 1, e ->> 2, e ->> 3, e ->> 4, e ->> 5, e ->> 6
    FROM json_array_elements(entries) WITH ORDINALITY AS entry (e, n);
  PERFORM flush_counts();
  PERFORM flush_loads();
  UPDATE classes SET served = newest WHERE seq = ANY (served_classes);
  IF added > 0 THEN PERFORM announce(channel); END IF;
END
$$;
${announcements}`;
