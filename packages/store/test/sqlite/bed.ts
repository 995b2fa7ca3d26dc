// A SQLite database in a temporary folder, for the contract suite and for tests specific to SQLite.

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { type Clock, systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { makeTempFolder, type StoreBed } from '@millrace/testkit';
import { openSqliteStore } from '../../src/sqlite/sqlite.ts';
import type { Store } from '../../src/store.ts';

export async function openSqliteBed(clock: Clock = systemClock): Promise<StoreBed & { readonly path: string }> {
  const folder = await makeTempFolder('millrace-store');
  const path = join(folder.path, 'store.db');
  const handles: Store[] = [];
  const another = async () => {
    const store = await openSqliteStore({ path, clock, log: silentLog });
    handles.push(store);
    return store;
  };
  return {
    path,
    store: await another(),
    another,
    async [Symbol.asyncDispose]() {
      await Promise.all(handles.map((store) => store[Symbol.asyncDispose]()));
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** Fails writes beyond this size, as a full disk would. Sets the soft limit of this process, so that it can be raised again. */
export function limitFileSize(bytes: string): void {
  execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${bytes}:`]);
}
