// How many rollouts run on each backend, with the length of their contexts together, and notifications that do not grow with the number of
// processes. The process that numbers the log changes both.

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

export const loadTables = `
CREATE TABLE backend_totals (id ${text} PRIMARY KEY, in_flight bigint NOT NULL, tokens bigint NOT NULL) WITH (fillfactor = 50);
${announcements}`;
