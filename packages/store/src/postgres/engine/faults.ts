// What PostgreSQL's errors mean for the caller: run it again, the storage failed, or a bug.

import { messageOf, RolloutError } from '@millrace/protocol';
import pg from 'pg';
import { StoreError, StoreFault } from '../../store-fault.ts';

export const poolerFault =
  'the address is that of a pooler that gives each transaction another connection, and prepared statements and LISTEN belong to a connection: set its pool mode to session (pgbouncer: pool_mode = session), or connect to the server itself';

/** The connection is gone. A transaction that was not committed has changed nothing. */
export class ConnectionLost extends Error {
  constructor(cause: unknown) {
    super(messageOf(cause), { cause });
    this.name = 'ConnectionLost';
  }
}

/**
 * Errors of two transactions that met: the same calls succeed when they are repeated. A unique violation is one, because a row that
 * did not exist when a call looked was added by another. So is a prepared statement whose tables a migration changed.
 */
const collisions: Readonly<Record<string, string>> = {
  40001: 'serialization failure',
  '40P01': 'deadlock',
  23505: 'unique violation',
  '55P03': 'lock timeout',
};

export function isCollision(error: unknown): boolean {
  return codeOf(error) in collisions;
}

/** The statements that the session has prepared belong to tables from before a migration. */
export function isStalePlan(error: unknown): boolean {
  return codeOf(error) === '0A000' && messageOf(error).includes('cached plan');
}

function codeOf(error: unknown): string {
  return error instanceof pg.DatabaseError ? (error.code ?? '') : '';
}

/** A prepared statement that another client made, and one that this client made elsewhere. */
const poolerCodes: ReadonlySet<string> = new Set(['42P05', '26000']);

/** What the caller of the store gets. `where` is the address without its password. */
export function toStoreError(error: unknown, where: string): RolloutError {
  if (error instanceof RolloutError) return error;
  const code = codeOf(error);
  const message = `store ${where}: ${code === '' ? '' : `${code}: `}${messageOf(error)}`;
  if (poolerCodes.has(code)) return new StoreError(`${message}: ${poolerFault}`, 'the store failed: its pooler is not in session mode');
  if (error instanceof ConnectionLost) return new StoreFault(message, 'the store failed: its database cannot be reached');
  if (code === '53100') return new StoreFault(message, 'the store failed: the disk of its database is full', { isDiskFull: true });
  // Out of resources, storage errors, a statement that took too long, a server that only reads, and collisions that did not end.
  const isFault = /^(53|58|XX|57014|25006)/.test(code) || isCollision(error);
  if (isFault) return new StoreFault(message, `the store failed: ${collisions[code] ?? 'its database reports an error'}`);
  return new StoreError(message, 'the store failed; see the log of the service');
}

/** For a commit whose reply was lost, while the database cannot be asked what became of it. */
export function toUnknownOutcome(where: string): StoreFault {
  const message = `store ${where}: the connection broke during a commit, and the database cannot be reached to ask for its outcome`;
  return new StoreFault(message, 'the store failed: its database cannot be reached', { isUnknown: true });
}
