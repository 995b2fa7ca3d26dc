// The calls that every worker makes all the time (renewals, gate reports, moves, placements), each kind as one statement for any number of
// calls, in one message and one soft commit. The fence is in each statement. A call without a reply needs more than the usual case: it runs alone.

import { moves } from '@millrace/protocol/plain';

const legalMoves = (['init', 'ready', 'run'] as const)
  .flatMap((from) => (['ready', 'run', 'evaluate'] as const).filter((to) => moves[from].includes(to)).map((to) => `('${from}', '${to}')`))
  .join(', ');
const claimColumns = 'i int, id text COLLATE "C", worker text COLLATE "C", attempt bigint';

// What a worker holds and does not name has to be taken back, so such a renewal has no reply.
const renewAll = `
  IF calls -> 'renew' IS NOT NULL THEN
    RETURN QUERY WITH asked AS (SELECT * FROM json_to_recordset(calls -> 'renew') AS x (i int, worker text COLLATE "C", lease bigint, report text, held json)),
      renewed AS (UPDATE workers w SET lease_until = now_ms + a.lease, report = a.report FROM asked a WHERE w.id = a.worker AND w.ended_at IS NULL RETURNING a.i),
      holds AS MATERIALIZED (SELECT worker, id, attempt FROM rollouts WHERE worker = ANY (ARRAY(SELECT worker FROM asked WHERE held IS NOT NULL))),
      cancels AS MATERIALIZED (SELECT worker, id, seq FROM rollouts WHERE cancel_asked = 1 AND worker = ANY (ARRAY(SELECT worker FROM asked))),
      named AS MATERIALIZED (SELECT a.i, h ->> 0 AS id, (h ->> 1)::bigint AS attempt FROM asked a, json_array_elements(a.held) AS h WHERE a.held IS NOT NULL),
      lost AS (SELECT a.i FROM asked a JOIN holds h ON h.worker = a.worker WHERE a.held IS NOT NULL
        AND (a.i, h.id, h.attempt) NOT IN (SELECT n.i, n.id COLLATE "C", n.attempt FROM named n))
      SELECT a.i, json_build_object('alive', r.i IS NOT NULL, 'cancelled', coalesce(
        (SELECT json_agg(c.id ORDER BY c.seq) FROM cancels c WHERE r.i IS NOT NULL AND c.worker = a.worker), '[]'))
      FROM asked a LEFT JOIN renewed r USING (i) WHERE r.i IS NULL OR a.i NOT IN (SELECT l.i FROM lost l);
  END IF;`;

const reportGates = `
  IF calls -> 'reportGate' IS NOT NULL THEN
    UPDATE workers w SET pause_seen = a.pause, generating = a.generating
      FROM json_to_recordset(calls -> 'reportGate') AS a (i int, worker text COLLATE "C", pause bigint, generating bigint)
      WHERE w.id = a.worker AND w.ended_at IS NULL;
    RETURN QUERY SELECT a.i, 'null'::json FROM json_to_recordset(calls -> 'reportGate') AS a (i int)
      WHERE NOT EXISTS (SELECT 1 FROM policy p WHERE p.state = 'pausing');
  END IF;`;

const moveAll = `
  IF calls -> 'move' IS NOT NULL THEN
    RETURN QUERY WITH asked AS (SELECT * FROM json_to_recordset(calls -> 'move') AS x (${claimColumns}, state text COLLATE "C", again boolean)),
      held AS (SELECT a.i, r.seq, r.id, r.group_id, r.scenario, r.state AS was, a.state, a.worker, a.attempt, a.again FROM rollouts r
        JOIN asked a ON r.id = a.id AND r.worker = a.worker AND r.attempt = a.attempt ORDER BY r.seq FOR UPDATE OF r),
      legal AS (SELECT * FROM held WHERE (was, state) IN (${legalMoves})),
      moved AS (UPDATE rollouts r SET state = l.state FROM legal l WHERE r.seq = l.seq),
      logged AS (INSERT INTO event_inbox (at, kind, rollout_id, group_id, worker_id, data) SELECT now_ms, 'rollout-move', id, group_id, worker,
        json_build_object('from', was, 'to', state, 'attempt', attempt, 'worker', worker, 'scenario', scenario) FROM legal)
      SELECT a.i, to_json(h.i IS NOT NULL) FROM asked a LEFT JOIN held h USING (i)
        WHERE h.i IS NULL OR h.i IN (SELECT l.i FROM legal l) OR ((is_repeated OR h.again) AND h.was = h.state);
  END IF;`;

// As `chooseBackend`: the backend where the rollout is, unless that is far busier than the least busy one; else one that its siblings have
// warmed; else the least busy. Placements follow each other, each for the time of its statement, so that each sees those before.
const choice = `
    WITH candidates AS (SELECT b.id, b.policy_version, coalesce(l.in_flight, 0) - (b.id IS NOT DISTINCT FROM held.backend)::int AS n,
        coalesce(l.tokens, 0) AS tokens, coalesce(s.n, 0) AS siblings
      FROM backends b LEFT JOIN backend_loads l ON l.id = b.id
        LEFT JOIN (SELECT o.backend AS id, count(*) AS n FROM rollouts o JOIN backends k ON k.id = o.backend
          WHERE o.group_id = held.group_id AND o.seq <> held.seq AND (o.state = 'run' OR o.backend_version = k.policy_version) GROUP BY 1) s ON s.id = b.id
      WHERE b.broken_at IS NULL AND (b.state = 'up' OR (one.sticky AND b.id = held.backend))
        AND b.id NOT IN (SELECT f.backend FROM backend_faults f WHERE f.machine = (SELECT w.host FROM workers w WHERE w.id = one.worker))
        AND b.id NOT IN (SELECT json_array_elements_text(one.exclude))),
      least AS (SELECT * FROM candidates ORDER BY n, tokens, id LIMIT 1),
      here AS (SELECT c.id, c.n - t.n >= greatest(2, one.spill_rollouts) AND c.n > one.spill_factor * t.n AS is_far_busier
        FROM candidates c, least t WHERE one.sticky AND c.id = held.backend),
      bound AS (SELECT one.affinity * (sum(n) + 1) / count(*) + 1 AS n FROM candidates)
      SELECT c.id, c.policy_version INTO chosen FROM candidates c LEFT JOIN here h ON true, bound
      ORDER BY CASE WHEN c.id = h.id AND NOT h.is_far_busier THEN 0 WHEN c.id IS DISTINCT FROM h.id AND c.siblings > 0 AND c.n < bound.n THEN 1 ELSE 2 END,
        CASE WHEN c.id IS DISTINCT FROM h.id AND c.siblings > 0 AND c.n < bound.n THEN -c.siblings ELSE 0 END, c.n, c.tokens, c.id LIMIT 1;`;

const placeAll = `
  IF calls -> 'place' IS NOT NULL THEN
    PERFORM 1 FROM rollouts WHERE id IN (SELECT a.id FROM json_to_recordset(calls -> 'place') AS a (id text COLLATE "C")) ORDER BY seq FOR UPDATE;
    PERFORM pg_advisory_xact_lock(hashtext(current_schema()), 4);
    FOR one IN SELECT * FROM json_to_recordset(calls -> 'place') AS x (${claimColumns}, exclude json, sticky boolean, again boolean, tokens bigint,
      affinity double precision, spill_factor double precision, spill_rollouts double precision) LOOP
      SELECT r.seq, r.group_id, r.state, r.backend, r.id INTO held FROM rollouts r WHERE r.id = one.id AND r.worker = one.worker AND r.attempt = one.attempt;
      IF FOUND AND held.state <> 'run' AND (is_repeated OR one.again) THEN CONTINUE; END IF;
      i := one.i;
      reply := 'null';
      IF FOUND AND held.state = 'run' THEN
        chosen := NULL;${choice}
        IF FOUND THEN
          UPDATE rollouts r SET backend = chosen.id, backend_version = chosen.policy_version, context_tokens = coalesce(one.tokens, r.context_tokens)
            WHERE r.seq = held.seq;
          IF held.backend <> chosen.id THEN
            INSERT INTO event_inbox (at, kind, rollout_id, group_id, backend_id, data)
              VALUES (now_ms, 'rollout-place', held.id, held.group_id, chosen.id, json_build_object('from', held.backend, 'to', chosen.id));
          END IF;
          reply := to_json(chosen.id);
        END IF;
      END IF;
      RETURN NEXT;
    END LOOP;
  END IF;`;

export const workerCallFunctions = `
CREATE FUNCTION run_worker_calls(calls json, given_at bigint, channel text, is_repeated boolean) RETURNS TABLE (i int, reply json) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  now_ms bigint := coalesce(given_at, (1000 * extract(epoch FROM clock_timestamp()))::bigint);
  one record;
  held record;
  chosen record;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM pg_current_xact_id();${renewAll}${reportGates}${moveAll}${placeAll}
  IF (calls -> 'move' IS NOT NULL OR calls -> 'place' IS NOT NULL) AND NOT is_sequencer_awake() THEN PERFORM pg_notify(channel || '_log', ''); END IF;
END
$$;
`;
