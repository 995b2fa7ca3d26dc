// A store's file outside of a service: opening it for an administrator, checking that it is whole, and finding out whether it is in use.

import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { messageOf } from '@millrace/protocol';
import { isBusy } from '../engine/connection.ts';
import { checkVersion } from '../engine/schema.ts';

/** The caller closes it. Throws an Error that names the file if there is no store, or one that this version does not know. */
export function openStoreFile(path: string, options: { readonly readOnly: boolean }): DatabaseSync {
  if (!existsSync(path)) throw new Error(`there is no store ${path}: name the folder of the store with --data or --config`);
  const db = new DatabaseSync(path, { readOnly: options.readOnly, timeout: 60_000 });
  try {
    readSchema(db);
    return db;
  } catch (error) {
    db.close();
    throw new Error(`${path} cannot be used: ${messageOf(error)}`, { cause: error });
  }
}

/** The version of its schema. */
export function readSchema(db: DatabaseSync): number {
  const found = readNumber(db, 'PRAGMA user_version');
  if (found === 0) throw new Error('it is not a store of Millrace');
  checkVersion(found);
  return found;
}

/** The first column of the first row. */
export function readNumber(db: DatabaseSync, sql: string): number {
  return Number(Object.values(db.prepare(sql).get() ?? {})[0] ?? 0);
}

/** Throws an Error with what SQLite found if the file is damaged. */
export function checkIntegrity(path: string): void {
  const db = openStoreFile(path, { readOnly: true });
  try {
    const found = db
      .prepare('PRAGMA integrity_check(5)')
      .all()
      .map((row) => String(row.integrity_check));
    if (found.join() !== 'ok') throw new Error(`${path} is damaged: ${found.join('; ')}`);
  } finally {
    db.close();
  }
}

/**
 * Runs `work` while no other process has the file open; false if one has. Afterwards the file has no write-ahead log, so that it can
 * be moved or replaced.
 */
export function whileUnused(path: string, work: (db: DatabaseSync) => void): boolean {
  const db = new DatabaseSync(path, { timeout: 0 });
  try {
    // A connection keeps a shared lock on a file with a write-ahead log for as long as it is open.
    db.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT; PRAGMA journal_mode = DELETE');
  } catch (error) {
    db.close();
    if (isBusy(error)) return false;
    throw error;
  }
  try {
    work(db);
  } finally {
    db.close();
  }
  return true;
}
