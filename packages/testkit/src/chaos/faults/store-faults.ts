// Faults of the store's file: a full disk, a write lock that another process holds, and an fsync that takes long.

import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import type { ChaosKind } from '../scene/plan.ts';
import { between, type CauseFault, until } from '../scene/scene.ts';
import { fillDatabaseDisk, lockLog } from './database-faults.ts';

const longestWaitMs = 4000;

export const storeFaults = {
  /** Lasts on after the first refused write. */
  async 'disk-full'({ disk, log, database }, { size }) {
    if (database) return await fillDatabaseDisk({ disk, database }, between(200, 1500, size));
    const before = log.count('ENOSPC');
    disk?.fill();
    try {
      const hasHit = await until(() => log.count('ENOSPC') > before, longestWaitMs);
      await pause(between(200, 1500, size));
      return hasHit;
    } finally {
      disk?.free();
    }
  },

  /** This process is the other process. */
  async 'store-lock'({ service, leaseMs, database }, { size }) {
    if (database) return await lockLog(database, between(200, 1.5 * leaseMs, size));
    using db = new DatabaseSync(service.storePath, { timeout: 100 });
    const isLocked = await lock(db);
    if (!isLocked) return false;
    await pause(between(200, 1.5 * leaseMs, size));
    db.exec('ROLLBACK');
    return true;
  },

  async 'slow-sync'({ preload }, { size, choice }) {
    const before = preload.countDelayed();
    preload.setSyncDelay(between(50, 1200, size * size));
    try {
      await pause(between(500, 2500, choice));
      return await until(() => preload.countDelayed() > before, longestWaitMs);
    } finally {
      preload.setSyncDelay(0);
    }
  },
} as const satisfies Partial<Record<ChaosKind, CauseFault>>;

/** The writers of the service leave little room between their transactions. */
async function lock(db: DatabaseSync): Promise<boolean> {
  for (let tries = 0; tries < 100; tries += 1) {
    try {
      db.exec('BEGIN IMMEDIATE');
      return true;
    } catch {} // busy, or the disk is full
    await pause(Math.random() * 20);
  }
  return false;
}
