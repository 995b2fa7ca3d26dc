// The size of the database. What is free on its disk, only its own machine knows.

import type { Transaction } from '../transaction.ts';

export async function databaseBytes(transaction: Transaction): Promise<number> {
  return (await transaction.one<{ bytes: number }>('SELECT pg_database_size(current_database()) AS bytes'))?.bytes ?? 0;
}
