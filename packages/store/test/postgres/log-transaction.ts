// A transaction that has written to the log and not committed yet, as a slow process would leave it for a moment.

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
      await client.query("SELECT log_changes($1::json, '{}', 'none', '{}', true)", [JSON.stringify([entry])]);
    },
    async commit() {
      await client.query('COMMIT');
    },
    [Symbol.asyncDispose]: () => client.end(),
  };
}

/** The schema of the store at this address. */
export function schemaOf(address: string): string {
  return new URL(address).searchParams.get('options')?.split('=')[1] ?? 'public';
}
