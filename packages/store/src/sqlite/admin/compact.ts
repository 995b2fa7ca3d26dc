// Gives the space of deleted rows back to the disk. In small steps, between which the service writes as usual; or all at once, while no
// service runs.

import { statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { sleep, systemClock } from '@millrace/base/clock';
import { whileBusySync } from '../engine/connection.ts';
import { openStoreFile, readNumber, whileUnused } from './store-file.ts';

export interface CompactReport {
  readonly steps: number;
  readonly freedBytes: number;
  /** How long one step held the write lock: the longest, and all together. */
  readonly longestLockMs: number;
  readonly lockMs: number;
}

/** A step is made smaller when it holds the lock for longer than this, and larger when it is well below. */
const stepMs = 4;
const mostPages = 4096;
const [mostCopies, copyPauseMs] = [500, 20];

/** `onStep` is called after each step with the bytes that are left. Stops between steps when `signal` aborts. */
export async function compactStore(
  path: string,
  { onStep, signal }: { readonly onStep?: (leftBytes: number) => void; readonly signal?: AbortSignal } = {},
): Promise<CompactReport> {
  const db = openStoreFile(path, { readOnly: false });
  try {
    const pageBytes = readNumber(db, 'PRAGMA page_size');
    const countFree = () => readNumber(db, 'PRAGMA freelist_count');
    if (countFree() > 0 && readNumber(db, 'PRAGMA auto_vacuum') !== 2) throw new Error(tooOld(path));
    let [steps, lockMs, longestLockMs, freedPages, pages] = [0, 0, 0, 0, 64];
    for (let free = countFree(); free > 0 && !signal?.aborted; steps += 1) {
      const heldMs = freePages(db, pages);
      const left = countFree();
      // More pages may have been freed meanwhile than this step gave back.
      freedPages += Math.max(0, Math.min(pages, free - left));
      free = left;
      lockMs += heldMs;
      longestLockMs = Math.max(longestLockMs, heldMs);
      pages = heldMs > stepMs ? Math.max(8, pages >> 1) : heldMs < stepMs / 2 ? Math.min(mostPages, pages * 2) : pages;
      onStep?.(left * pageBytes);
      await sleep(Math.max(1, heldMs));
    }
    await copyLogBack(db, path);
    return { steps, freedBytes: freedPages * pageBytes, longestLockMs, lockMs };
  } finally {
    db.close();
  }
}

/**
 * The file shrinks when its whole log is copied back while no other process writes; SQLite reports a full copy even if one does. If readers
 * or writers delay it for long, the service does it later.
 */
async function copyLogBack(db: DatabaseSync, path: string): Promise<void> {
  for (let tries = 0; tries < mostCopies && statSync(path).size > readBytes(db); tries += 1) {
    if (tries > 0) await sleep(copyPauseMs);
    db.exec('PRAGMA wal_checkpoint(PASSIVE)');
  }
}

/** What the file needs for all of its pages, those in the log too. */
function readBytes(db: DatabaseSync): number {
  return readNumber(db, 'PRAGMA page_count') * readNumber(db, 'PRAGMA page_size');
}

/** Returns how long it held the write lock, with the commit. */
function freePages(db: DatabaseSync, pages: number): number {
  whileBusySync(() => db.exec('BEGIN IMMEDIATE'));
  const lockedAt = systemClock.monotonic();
  try {
    db.exec(`PRAGMA incremental_vacuum(${pages})`);
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
  return systemClock.monotonic() - lockedAt;
}

/** Writes the whole file again, from which point on it can be compacted in steps. Needs as much free space as the file has rows. */
export function compactWholeStore(path: string): CompactReport {
  openStoreFile(path, { readOnly: true }).close();
  const startedAt = systemClock.monotonic();
  let freedBytes = 0;
  const isUnused = whileUnused(path, (db) => {
    const before = readBytes(db);
    db.exec('PRAGMA auto_vacuum = INCREMENTAL; VACUUM');
    freedBytes = before - readBytes(db);
  });
  if (!isUnused) throw new Error(`${path} is in use: stop the service first, or compact it in steps without --whole`);
  const lockMs = systemClock.monotonic() - startedAt;
  return { steps: 1, freedBytes, longestLockMs: lockMs, lockMs };
}

function tooOld(path: string): string {
  return `${path} was made by a version that cannot give back space in steps: stop the service and run \`millrace store compact --whole\` once`;
}
