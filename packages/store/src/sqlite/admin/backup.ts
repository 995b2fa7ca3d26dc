// Backups of a store: written from one snapshot while the service runs, checked before they get their name, and restored only onto a
// store that is not in use.

import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { checkIntegrity, openStoreFile, readNumber, readSchema, whileUnused } from './store-file.ts';

interface BackupReport {
  readonly path: string;
  readonly bytes: number;
  readonly schema: number;
  readonly rollouts: number;
}

/** Throws if `target` exists. A backup that fails leaves no file. */
export function backupStore(path: string, target: string): BackupReport {
  if (existsSync(target)) throw new Error(`${target} exists: name a new file`);
  if (!existsSync(dirname(target))) throw new Error(`${target} cannot be written: there is no folder ${dirname(target)}`);
  const partial = `${target}.partial`;
  rmSync(partial, { force: true });
  createFile(partial);
  try {
    writeCopy(path, partial, { readOnly: false });
    const report = readReport(partial);
    renameSync(partial, target);
    syncFolder(dirname(target));
    return { ...report, path: target };
  } finally {
    rmSync(partial, { force: true });
  }
}

/**
 * Replaces the store by the backup. The store that was there is kept next to it, under the name that is returned. Throws if the store
 * is in use, or has rollouts or batches and `replace` is not set.
 */
export function restoreStore(
  backup: string,
  path: string,
  options: { readonly replace: boolean; readonly suffix: string },
): BackupReport & { readonly kept?: string } {
  checkIntegrity(backup);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const partial = `${path}.partial`;
  rmSync(partial, { force: true });
  createFile(partial);
  try {
    writeCopy(backup, partial, { readOnly: true });
    const report = readReport(partial);
    const kept = existsSync(path) ? setAside(path, options) : undefined;
    renameSync(partial, path);
    syncFolder(dirname(path));
    return { ...report, path, ...(kept !== undefined && { kept }) };
  } finally {
    rmSync(partial, { force: true });
  }
}

/** One read transaction: consistent, and no writer waits for it. The copy has no unused pages and can be compacted in steps. */
function writeCopy(from: string, to: string, options: { readonly readOnly: boolean }): void {
  const db = openStoreFile(from, options);
  try {
    // Only for the copy; SQLite refuses the setting on a connection that cannot write.
    if (!options.readOnly) db.exec('PRAGMA auto_vacuum = INCREMENTAL');
    db.prepare('VACUUM INTO ?').run(to);
  } finally {
    db.close();
  }
  const file = openSync(to, 'r+');
  fsyncSync(file);
  closeSync(file);
}

function readReport(path: string): BackupReport {
  checkIntegrity(path);
  const db = openStoreFile(path, { readOnly: true });
  try {
    return { path, bytes: statSync(path).size, schema: readSchema(db), rollouts: readNumber(db, 'SELECT count(*) FROM rollouts') };
  } finally {
    db.close();
  }
}

function setAside(path: string, { replace, suffix }: { readonly replace: boolean; readonly suffix: string }): string {
  const kept = `${path}.${suffix}`;
  const isUnused = whileUnused(path, (db) => {
    const { rollouts, batches } = countRows(db);
    if (!replace && rollouts + batches > 0)
      throw new Error(
        `${path} has ${rollouts} rollouts and ${batches} batches: to replace it, add --replace; it will be kept next to the new one`,
      );
    // The write-ahead log is gone, so nothing of the old file can reach the new one.
    renameSync(path, kept);
  });
  if (!isUnused) throw new Error(`${path} is in use: stop the service first`);
  rmSync(`${path}-hint`, { force: true });
  return kept;
}

function countRows(db: DatabaseSync): { rollouts: number; batches: number } {
  const hasTables = readNumber(db, "SELECT count(*) FROM sqlite_schema WHERE name IN ('rollouts', 'batches')") === 2;
  if (!hasTables) return { rollouts: 0, batches: 0 };
  return { rollouts: readNumber(db, 'SELECT count(*) FROM rollouts'), batches: readNumber(db, 'SELECT count(*) FROM batches') };
}

/** It holds backend keys, so only its owner can read it. */
function createFile(path: string): void {
  closeSync(openSync(path, 'ax', 0o600));
}

function syncFolder(path: string): void {
  const folder = openSync(path, 'r');
  fsyncSync(folder);
  closeSync(folder);
}
