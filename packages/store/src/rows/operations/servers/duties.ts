// Duties that one server at a time has, by a lease.

import type { DutyRequest } from '../../../servers/server-store.ts';
import type { Transaction } from '../../../transaction.ts';

/** No lease is this much longer than those of this process: one that ends later was written by a clock that was ahead. */
const longerLeaseMs = 60_000;

export async function takeDuty(transaction: Transaction, { name, holder, leaseMs }: DutyRequest): Promise<boolean> {
  const { nowMs } = transaction;
  const sql = `INSERT INTO duties (name, holder, until) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE
    SET holder = excluded.holder, until = excluded.until WHERE duties.holder = excluded.holder OR duties.until <= ? OR duties.until > ?`;
  return (await transaction.run(sql, name, holder, nowMs + leaseMs, nowMs, nowMs + leaseMs + longerLeaseMs)) > 0;
}

/** Until when a server leads, or led last; absent if none ever did. */
export async function leadUntilMs(transaction: Transaction): Promise<number | undefined> {
  return (await transaction.one<{ until: number }>("SELECT until FROM duties WHERE name = 'lead'"))?.until;
}
