// A transaction that has written to the log and not committed yet, as a slow process would leave it for a moment.

import type { PostgresServer } from '@millrace/testkit';
import pg from 'pg';

export interface LogTransaction extends AsyncDisposable {
  append(name: string): Promise<void>;
  commit(): Promise<void>;
}

export async function openLogTransaction(address: string): Promise<LogTransaction> {
  const client = new pg.Client({ connectionString: address });
  client.on('error', () => {}); // a query reports it
  await client.connect();
  await client.query('BEGIN');
  return {
    async append(name) {
      const entry = [1_700_000_000_000, 'turn-end', null, null, null, null, JSON.stringify({ name })];
      await client.query("SELECT append_log($1::json, '{}', 'none')", [JSON.stringify([entry])]);
    },
    async commit() {
      await client.query('COMMIT');
    },
    [Symbol.asyncDispose]: () => client.end(),
  };
}

/** Resolves when a transaction of a store waits for the lock of a row. */
export async function waitForLock(server: PostgresServer): Promise<void> {
  const sql = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'millrace' AND wait_event_type = 'Lock'";
  while ((await server.run(sql)).length === 0);
}

/** The schema of the store at this address. */
export function schemaOf(address: string): string {
  return new URL(address).searchParams.get('options')?.split('=')[1] ?? 'public';
}

/** Replaces the order of commits by a sequence, which this store does without. */
export async function useSequence(server: PostgresServer, address: string): Promise<void> {
  await server.run(`SET search_path = ${schemaOf(address)};
    DROP TABLE event_log;
    CREATE SEQUENCE plain;
    SELECT setval('plain', 1000);
    CREATE VIEW event_log AS SELECT last_value AS last FROM plain;
    CREATE OR REPLACE FUNCTION append_log(entries json, served_classes bigint[], channel text) RETURNS void LANGUAGE sql AS $$
      INSERT INTO events (id, at, kind, data) SELECT nextval('plain'), (e ->> 0)::bigint, e ->> 1, e ->> 6 FROM json_array_elements(entries) AS e
    $$`);
}
