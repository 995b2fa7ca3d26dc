// Faults of a store in PostgreSQL: the server is killed and started again, its disk is full, and another process holds the lock that
// every commit needs.

import { setTimeout as pause } from 'node:timers/promises';
import type { PostgresServer } from '../../postgres/postgres-server.ts';
import type { ChaosKind } from '../scene/plan.ts';
import { between, type CauseFault, type Scene, until } from '../scene/scene.ts';

const longestWaitMs = 4000;

export const databaseFaults = {
  /** Often for longer than a lease: no worker may be lost for it. */
  async 'kill-database'({ database, leaseMs }, { size, choice }) {
    await database?.stop(choice < 0.5 ? 'SIGKILL' : 'SIGQUIT');
    await pause(between(0, 2 * leaseMs, size * size));
    await database?.start();
    return true;
  },
} as const satisfies Partial<Record<ChaosKind, CauseFault>>;

/** PostgreSQL stops when it cannot write its log, as its documentation says; then it is started again. */
export async function fillDatabaseDisk(
  { disk, database }: { disk: Scene['disk']; database: PostgresServer },
  ms: number,
): Promise<boolean> {
  const before = countFull(database);
  disk?.fill();
  let hasHit: boolean;
  try {
    hasHit = await until(() => countFull(database) > before || !database.isRunning, longestWaitMs);
    await pause(ms);
  } finally {
    disk?.free();
  }
  await pause(100);
  if (!database.isRunning) await database.start();
  return hasHit;
}

function countFull(database: PostgresServer): number {
  return database.output.split('No space left on device').length;
}

/** As a process that stopped in the middle of a commit. */
export async function lockLog(database: PostgresServer, ms: number): Promise<boolean> {
  return await database.hold('UPDATE event_log SET last = last', ms);
}
