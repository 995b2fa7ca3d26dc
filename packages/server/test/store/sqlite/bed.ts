// A SQLite database in a temporary folder, for the contract suite and for what only this engine promises.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StoreBed } from '@millrace/testkit';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite.ts';
import type { Store } from '../../../src/store/store.ts';

export async function openSqliteBed(clock: Clock = systemClock): Promise<StoreBed & { readonly path: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-store-'));
  const path = join(folder, 'store.db');
  const handles: Store[] = [];
  const another = async () => {
    const store = await openSqliteStore({ path, clock });
    handles.push(store);
    return store;
  };
  return {
    path,
    store: await another(),
    another,
    async [Symbol.asyncDispose]() {
      await Promise.all(handles.map((store) => store[Symbol.asyncDispose]()));
      await rm(folder, { recursive: true });
    },
  };
}
