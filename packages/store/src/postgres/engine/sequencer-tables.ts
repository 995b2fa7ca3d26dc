// The log without a lock. A transaction leaves its events in `event_inbox`, and what it changed of the counts in three tables of
// differences; the process that numbers the log moves what is committed to `events` and adds up the differences, under the lock of the log. So a
// commit waits for no other, and readers see numbered events only: a number is given to what is committed, durably, and never changes.
// What was caused by something comes after it: its row in the inbox has the larger number, and was committed later.

import { text } from './columns.ts';

// Deleted rows stay in a table and its index until no transaction can see them, for the time of a backup for example. So no statement looks
// below `read_from`: every row below was numbered, or never will be. It is moved to what `log_order` had reached (`next_from`) once all
// transactions are over that had their number before `next_xid`, which was taken after that: a transaction has its own before it writes.
const inboxTables = `
CREATE SEQUENCE log_order;
CREATE TABLE event_inbox (
  n bigint PRIMARY KEY DEFAULT nextval('log_order'),
  at bigint NOT NULL,
  kind ${text} NOT NULL,
  rollout_id ${text},
  group_id ${text},
  worker_id ${text},
  backend_id ${text},
  data text NOT NULL
);
CREATE TABLE count_deltas (n bigint PRIMARY KEY DEFAULT nextval('log_order'), class bigint NOT NULL, state ${text} NOT NULL, line ${text} NOT NULL,
  by bigint NOT NULL);
CREATE TABLE load_deltas (n bigint PRIMARY KEY DEFAULT nextval('log_order'), id ${text} NOT NULL, in_flight bigint NOT NULL, tokens bigint NOT NULL);
CREATE TABLE served_deltas (n bigint PRIMARY KEY DEFAULT nextval('log_order'), class bigint NOT NULL);
${['event_inbox', 'count_deltas', 'load_deltas', 'served_deltas']
  .map(
    (table) =>
      `ALTER TABLE ${table} SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);`,
  )
  .join('\n')}
`;

// Counted once for a statement, not for each row. Only rollouts that are queued or hold a slot count for their class.
const classOf = "CASE WHEN state IN ('queued', 'init', 'ready', 'run') THEN class ELSE 0 END";
const placed = "state = 'run' AND backend IS NOT NULL";
const deltaTriggers = `
CREATE FUNCTION note_rows() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  sign bigint := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
BEGIN
  INSERT INTO count_deltas (class, state, line, by) SELECT ${classOf}, state, line, sign * count(*) FROM changed GROUP BY 1, 2, 3;
  INSERT INTO load_deltas (id, in_flight, tokens)
    SELECT backend, sign * count(*), sign * sum(context_tokens) FROM changed WHERE ${placed} GROUP BY 1;
  RETURN NULL;
END
$$;
CREATE FUNCTION note_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO count_deltas (class, state, line, by) SELECT of_class, state, line, sum(one) FROM (
    SELECT ${classOf} AS of_class, state, line, -1 AS one FROM was UNION ALL SELECT ${classOf}, state, line, 1 FROM changed) AS parts
    GROUP BY 1, 2, 3 HAVING sum(one) <> 0;
  INSERT INTO load_deltas (id, in_flight, tokens) SELECT backend, sum(one), sum(tokens) FROM (
    SELECT backend, -1 AS one, -context_tokens AS tokens FROM was WHERE ${placed}
    UNION ALL SELECT backend, 1, context_tokens FROM changed WHERE ${placed}) AS parts
    GROUP BY 1 HAVING sum(one) <> 0 OR sum(tokens) <> 0;
  RETURN NULL;
END
$$;
CREATE TRIGGER rollouts_added AFTER INSERT ON rollouts REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_rows();
CREATE TRIGGER rollouts_deleted AFTER DELETE ON rollouts REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_rows();
CREATE TRIGGER rollouts_changed AFTER UPDATE ON rollouts REFERENCING OLD TABLE AS was NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_changes();
`;

const isUnread = 'n >= (SELECT read_from FROM event_log)';
const liveCounts = `
CREATE VIEW state_counts AS SELECT state,
    n + coalesce((SELECT sum(by) FROM count_deltas d WHERE d.state = t.state AND ${isUnread.replace('n >=', 'd.n >=')}), 0)::bigint AS n
  FROM state_totals t;
CREATE VIEW pending_classes AS SELECT class,
    coalesce(sum(by) FILTER (WHERE state = 'queued'), 0)::bigint AS queued,
    coalesce(sum(by) FILTER (WHERE state = 'queued' AND line = 'due'), 0)::bigint AS due,
    coalesce(sum(by) FILTER (WHERE state <> 'queued'), 0)::bigint AS active
  FROM count_deltas WHERE class <> 0 AND ${isUnread} GROUP BY 1;
CREATE VIEW live_classes AS SELECT c.seq, c.kind, c.name, c.rank, c.weight,
    greatest(c.served, s.served) AS served,
    c.queued + coalesce(d.queued, 0) AS queued,
    c.due + coalesce(d.due, 0) AS due,
    c.active + coalesce(d.active, 0) AS active
  FROM classes c LEFT JOIN pending_classes d ON d.class = c.seq
    LEFT JOIN (SELECT class, max(n) AS served FROM served_deltas WHERE ${isUnread} GROUP BY 1) s ON s.class = c.seq;
CREATE VIEW claimable_classes AS SELECT seq, name, rank, weight, served, active, due FROM live_classes WHERE due > 0;
CREATE VIEW backend_loads AS SELECT id, sum(in_flight)::bigint AS in_flight, sum(tokens)::bigint AS tokens
  FROM (SELECT id, in_flight, tokens FROM backend_totals UNION ALL SELECT id, in_flight, tokens FROM load_deltas WHERE ${isUnread}) AS parts
  GROUP BY id HAVING sum(in_flight) > 0;
`;

// `number_log` numbers and adds up; its caller holds the lock of the log. The bound keeps one transaction short after a long time in
// which no one numbered.
const numbering = `
CREATE FUNCTION number_log(channel text, wakes text[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  most CONSTANT bigint := 5000;
  log event_log;
  is_fresh CONSTANT boolean := pg_current_xact_id_if_assigned() IS NULL;
  reached CONSTANT bigint := (SELECT last_value FROM log_order);
  own CONSTANT xid8 := pg_current_xact_id();
  is_over boolean;
  upper_n bigint;
  added bigint;
  is_wanted boolean;
BEGIN
  SELECT * INTO log FROM event_log;
  is_over := pg_snapshot_xmin(pg_current_snapshot()) >= log.next_xid;
  SELECT n INTO upper_n FROM event_inbox WHERE n >= log.read_from ORDER BY n OFFSET most - 1 LIMIT 1;
  WITH taken AS (DELETE FROM event_inbox WHERE n >= log.read_from AND n <= coalesce(upper_n, 9223372036854775807) RETURNING *),
    numbered AS (INSERT INTO events (id, at, kind, rollout_id, group_id, worker_id, backend_id, data)
      SELECT log.last + row_number() OVER (ORDER BY n), at, kind, rollout_id, group_id, worker_id, backend_id, data FROM taken RETURNING kind)
    SELECT count(*), bool_or(kind = ANY (wakes)) INTO added, is_wanted FROM numbered;
  WITH taken AS (DELETE FROM count_deltas WHERE n >= log.read_from RETURNING *),
    states AS (UPDATE state_totals t SET n = t.n + d.n FROM (SELECT state, sum(by) AS n FROM taken GROUP BY 1) d WHERE t.state = d.state AND d.n <> 0)
    UPDATE classes c SET queued = c.queued + d.queued, due = c.due + d.due, active = c.active + d.active
      FROM (SELECT class, coalesce(sum(by) FILTER (WHERE state = 'queued'), 0) AS queued,
          coalesce(sum(by) FILTER (WHERE state = 'queued' AND line = 'due'), 0) AS due,
          coalesce(sum(by) FILTER (WHERE state <> 'queued'), 0) AS active
        FROM taken WHERE class <> 0 GROUP BY 1) d
      WHERE c.seq = d.class AND (d.queued <> 0 OR d.due <> 0 OR d.active <> 0);
  WITH taken AS (DELETE FROM served_deltas WHERE n >= log.read_from RETURNING *)
    UPDATE classes c SET served = d.served FROM (SELECT class, max(n) AS served FROM taken GROUP BY 1) d WHERE c.seq = d.class;
  WITH taken AS (DELETE FROM load_deltas WHERE n >= log.read_from RETURNING *)
    INSERT INTO backend_totals SELECT id, sum(in_flight), sum(tokens) FROM taken GROUP BY 1
      HAVING sum(in_flight) <> 0 OR sum(tokens) <> 0
      ON CONFLICT (id) DO UPDATE SET in_flight = backend_totals.in_flight + excluded.in_flight, tokens = backend_totals.tokens + excluded.tokens;
  IF FOUND THEN DELETE FROM backend_totals WHERE in_flight = 0; END IF;
  is_over := is_over AND upper_n IS NULL;
  UPDATE event_log SET last = last + added,
    read_from = CASE WHEN is_over THEN next_from ELSE read_from END,
    next_from = CASE WHEN is_over AND is_fresh THEN reached + 1 ELSE next_from END,
    next_xid = CASE WHEN is_over AND is_fresh THEN own ELSE next_xid END;
  IF added > 0 THEN PERFORM announce(channel); END IF;
  IF is_wanted THEN PERFORM announce(channel || '_work'); END IF;
  RETURN added;
END
$$;
CREATE FUNCTION lock_log() RETURNS void LANGUAGE sql AS $$ SELECT pg_advisory_xact_lock(hashtext(current_schema()), 3) $$;
CREATE FUNCTION has_unnumbered() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
  below bigint := (SELECT read_from FROM event_log);
BEGIN
  RETURN EXISTS (SELECT 1 FROM event_inbox WHERE n >= below) OR EXISTS (SELECT 1 FROM count_deltas WHERE n >= below)
    OR EXISTS (SELECT 1 FROM load_deltas WHERE n >= below) OR EXISTS (SELECT 1 FROM served_deltas WHERE n >= below);
END
$$;
`;

// While a sequencer is awake, it looks every few milliseconds, and a commit leaves its events to it. At other times a durable commit
// numbers them itself if no other does, so that an idle service waits for nothing; any other commit wakes the sequencer. One that died
// counts as awake for a second.
const awakeMs = 1_000;
const writing = `
CREATE FUNCTION is_sequencer_awake() RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT awake_until - clock_timestamp() BETWEEN interval '0' AND interval '${awakeMs} ms' FROM event_log
$$;
CREATE FUNCTION sequence_log(channel text, wakes text[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  added bigint;
BEGIN
  IF NOT has_unnumbered() THEN RETURN 0; END IF;
  PERFORM lock_log();
  added := number_log(channel, wakes);
  IF added > 0 THEN
    UPDATE event_log SET awake_until = clock_timestamp() + interval '${awakeMs} ms'
      WHERE awake_until - clock_timestamp() NOT BETWEEN interval '${awakeMs / 2} ms' AND interval '${awakeMs} ms';
  END IF;
  RETURN added;
END
$$;
CREATE FUNCTION log_changes(entries json, served_classes bigint[], channel text, wakes text[], is_durable boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF json_array_length(entries) = 0 AND served_classes = '{}' THEN RETURN; END IF;
  PERFORM pg_current_xact_id();
  INSERT INTO event_inbox (at, kind, rollout_id, group_id, worker_id, backend_id, data)
    SELECT (e ->> 0)::bigint, e ->> 1, e ->> 2, e ->> 3, e ->> 4, e ->> 5, e ->> 6 FROM json_array_elements(entries) AS entry (e);
  INSERT INTO served_deltas (class) SELECT unnest(served_classes);
  IF is_sequencer_awake() THEN RETURN; END IF;
  IF is_durable AND pg_try_advisory_xact_lock(hashtext(current_schema()), 3) THEN PERFORM number_log(channel, wakes);
  ELSE PERFORM pg_notify(channel || '_log', ''); END IF;
END
$$;
`;

export const sequencerTables = `${inboxTables}${deltaTriggers}${liveCounts}${numbering}${writing}`;
