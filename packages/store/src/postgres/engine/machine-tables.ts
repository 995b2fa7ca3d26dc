// The second schema: what several servers agree on, and which machines cannot reach a backend. Processes of the first schema go on: the
// view that they claim through lists no class of work that requires labels of a machine. `passed_at`: since when a rollout was overtaken,
// because its siblings run on another machine.

import { text } from './columns.ts';

export const machineTables = `
CREATE TABLE duties (name ${text} PRIMARY KEY, holder text NOT NULL, until bigint NOT NULL) WITH (fillfactor = 50);
CREATE TABLE prorl (id smallint PRIMARY KEY CHECK (id = 1), running smallint NOT NULL, cleared_at bigint);
INSERT INTO prorl VALUES (1, 0, NULL);
CREATE TABLE prorl_jobs (
  rollout ${text} PRIMARY KEY,
  name ${text},
  digest text NOT NULL,
  server text NOT NULL,
  until bigint NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE backend_faults (
  backend ${text} NOT NULL,
  machine ${text} NOT NULL,
  since bigint NOT NULL,
  probes bigint NOT NULL,
  probe_at bigint NOT NULL,
  error text NOT NULL,
  PRIMARY KEY (backend, machine)
) WITH (fillfactor = 50);
ALTER TABLE rollouts ADD COLUMN passed_at bigint;
CREATE VIEW claimable_classes AS SELECT c.seq, c.name, c.rank, c.weight, c.served, c.active + coalesce(d.active, 0) AS active,
    c.due + coalesce(d.due, 0) AS due
  FROM classes c LEFT JOIN pending_classes d ON d.class = c.seq WHERE c.due + coalesce(d.due, 0) > 0;
CREATE OR REPLACE VIEW due_classes AS SELECT seq, rank, weight, served, active, due FROM claimable_classes WHERE strpos(name, E'\\n') = 0;
`;
