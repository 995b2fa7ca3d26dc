// Opens the store at its address: a PostgreSQL database, or a file of SQLite.

import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Clock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import type { BlobStore } from '../blobs/blob-store.ts';
import type { DiskLimits } from '../disk-budget.ts';
import type { HintScope } from '../postgres/postgres.ts';
import type { StoreObserver } from '../rows/observe-link.ts';
import { openSqliteStore } from '../sqlite/sqlite.ts';
import type { Store } from '../store.ts';
import { isPostgresAddress } from '../store-address.ts';

export type { HintScope };

interface OpenStoreOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly limits?: DiskLimits;
  readonly blobs?: BlobStore;
  /** Called for every call and transaction. */
  readonly observer?: StoreObserver;
  /** Which changes wake this process early; all unless set. */
  readonly hints?: HintScope;
  /** Called when the store can never succeed again in this process. */
  readonly onDeath?: (error: Error) => void;
}

/** The caller closes it. */
export async function openStore(address: string, options: OpenStoreOptions): Promise<Store> {
  if (isPostgresAddress(address)) {
    const { openPostgresStore } = await import('../postgres/postgres.ts'); // its client library is loaded only where it is used
    return await openPostgresStore({ address, ...options });
  }
  await mkdir(dirname(address), { recursive: true, mode: 0o700 });
  return await openSqliteStore({ path: address, ...options });
}
