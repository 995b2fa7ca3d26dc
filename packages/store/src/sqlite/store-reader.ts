// A store's file opened only for reading, for viewers: nothing is migrated, and no lease, hint or clock of a service is touched.

import { systemClock } from '@millrace/base/clock';
import { RolloutError } from '@millrace/protocol';
import type { BlobStore } from '../blobs/blob-store.ts';
import { TrajectoryBlobs } from '../blobs/trajectory-blobs.ts';
import { DiskBudget, unlimitedDisk } from '../disk-budget.ts';
import type { OperationLink } from '../rows/operation-link.ts';
import type { Reads, Writes } from '../rows/operations.ts';
import { RowStore } from '../rows/row-store.ts';
import type { Store } from '../store.ts';
import { TimeGuard } from '../time-guard.ts';
import { openStoreFile, readSchema } from './admin/store-file.ts';
import { isNewest } from './engine/schema.ts';
import { readStoreSize } from './engine/store-size.ts';
import { ThreadLink } from './link.ts';

type StoreReader = Pick<Store, 'get' | 'list' | 'trajectory' | 'events' | 'lastEventId' | 'oldestEventId'> & AsyncDisposable;

/** Throws if there is no store, or one that another version wrote. The caller closes it. */
export async function openStoreReader(path: string, blobStore?: BlobStore): Promise<StoreReader> {
  checkSchema(path);
  const clock = systemClock;
  const reader: ThreadLink<Reads> = new ThreadLink({ path, role: 'reader', hasOwnTime: true }, () => {}); // its calls then fail
  try {
    const blobs = blobStore && new TrajectoryBlobs(blobStore, await reader.call('storeId', undefined, clock.now()));
    return new RowStore({
      clock,
      reader,
      writer: refusal,
      guard: new TimeGuard({ clock, log: { info() {}, warn() {}, error() {} } }),
      budget: new DiskBudget(unlimitedDisk),
      blobs,
      hints: { subscribe: () => () => {}, [Symbol.dispose]() {} },
      readSize: async () => ({ ...(await readStoreSize(path)), reusableBytes: 0 }),
    });
  } catch (error) {
    await reader[Symbol.asyncDispose]();
    throw error;
  }
}

function checkSchema(path: string): void {
  const db = openStoreFile(path, { readOnly: true });
  try {
    const found = readSchema(db);
    if (!isNewest(found)) throw new Error(`it has schema ${found} of an older version: start the service once, which migrates it`);
  } finally {
    db.close();
  }
}

const refuse = async () => {
  throw new RolloutError('internal', 'this store was opened only for reading');
};

const refusal: OperationLink<Writes> = { call: refuse, timedCall: refuse, async [Symbol.asyncDispose]() {} };
