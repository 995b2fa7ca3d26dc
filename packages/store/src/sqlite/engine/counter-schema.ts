// The counters of batches: groups by state, kept by triggers, and what was sampled but not delivered, kept by `operations/waste.ts`.
// With them, reading a batch costs the same however much it has sampled.

// Rollouts of a batch are deleted with it, so the index that retention reads leaves them out.
export const counterTables = `
CREATE TABLE group_counts (
  batch_seq INTEGER NOT NULL,
  state TEXT NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY (batch_seq, state)
) STRICT, WITHOUT ROWID;
INSERT INTO group_counts SELECT batch_seq, state, count(*) FROM batch_groups GROUP BY batch_seq, state;
CREATE TRIGGER group_added AFTER INSERT ON batch_groups BEGIN
  INSERT INTO group_counts VALUES (NEW.batch_seq, NEW.state, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER group_moved AFTER UPDATE OF state, batch_seq ON batch_groups BEGIN
  UPDATE group_counts SET n = n - 1 WHERE batch_seq = OLD.batch_seq AND state = OLD.state;
  INSERT INTO group_counts VALUES (NEW.batch_seq, NEW.state, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TABLE batch_waste (
  batch_seq INTEGER NOT NULL,
  kind TEXT NOT NULL,
  rollouts INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  ms INTEGER NOT NULL,
  PRIMARY KEY (batch_seq, kind)
) STRICT, WITHOUT ROWID;
INSERT INTO batch_waste SELECT s.batch_seq,
  CASE WHEN g.state NOT IN ('open', 'delivered') THEN g.state WHEN r.state = 'failed' THEN 'failed' ELSE 'surplus' END AS kind,
  count(*), coalesce(sum(json_extract(r.result, '$.tokens.sampled')), 0),
  CAST(round(total(json_extract(r.result, '$.timings.init_ms') + json_extract(r.result, '$.timings.run_ms')
    + json_extract(r.result, '$.timings.evaluate_ms'))) AS INTEGER)
  FROM siblings s JOIN rollouts r ON r.seq = s.seq JOIN batch_groups g ON g.seq = s.group_seq
  WHERE s.place IS NULL AND r.attempt > 0 AND r.ended_at IS NOT NULL AND (g.state <> 'open' OR r.state <> 'done')
  GROUP BY s.batch_seq, kind;
ALTER TABLE rollouts ADD COLUMN is_sibling INTEGER NOT NULL DEFAULT 0;
UPDATE rollouts SET is_sibling = 1 WHERE seq IN (SELECT seq FROM siblings);
DROP INDEX rollouts_ended;
CREATE INDEX rollouts_ended ON rollouts (ended_at) WHERE ended_at IS NOT NULL AND is_sibling = 0;
`;
