// What several servers agree on, and which machines cannot reach a backend.

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
`;
