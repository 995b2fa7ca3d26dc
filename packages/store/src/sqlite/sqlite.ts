// The SQLite store: two threads, so that no query or fsync runs on the event loop. The writer commits all pending calls in one
// transaction; the reader never waits for a commit. Any number of processes can open the same file.

import { type Clock, systemClock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import { networkFileSystemOf } from '@millrace/base/network-file-system';
import { definedOf } from '@millrace/protocol';
import type { BlobStore } from '../blobs/blob-store.ts';
import { TrajectoryBlobs } from '../blobs/trajectory-blobs.ts';
import { DiskBudget, type DiskLimits, unlimitedDisk } from '../disk-budget.ts';
import { Hints } from '../rows/hints.ts';
import { observeLink, type StoreObserver } from '../rows/observe-link.ts';
import type { Reads, Writes } from '../rows/operations.ts';
import { RowStore } from '../rows/row-store.ts';
import type { Store } from '../store.ts';
import { TimeGuard } from '../time-guard.ts';
import { readStoreSize } from './engine/store-size.ts';
import { watchHints } from './engine/watch-hints.ts';
import { ThreadLink } from './link.ts';

interface SqliteStoreOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly log: Log;
  /** None unless set. */
  readonly limits?: DiskLimits;
  /** Where new trajectories are kept; in their rows unless set. */
  readonly blobs?: BlobStore;
  readonly observer?: StoreObserver;
  /** Called when a thread of the store has died. No call can succeed any more: the process should exit. */
  readonly onDeath?: (error: Error) => void;
}

/** Opens the file, or creates it and its folders. The caller closes the store. */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const { path, clock, log, limits = unlimitedDisk, onDeath = () => {} } = options;
  const network = networkFileSystemOf(path);
  if (network) log.warn('store-on-network-file-system', { path, type: network });
  const threads = { path, hasOwnTime: clock === systemClock };
  const writer: ThreadLink<Writes> = new ThreadLink({ ...threads, role: 'writer' }, onDeath);
  const reader: ThreadLink<Reads> = new ThreadLink({ ...threads, role: 'reader' }, onDeath);
  try {
    await writer.call('appendEvents', [], clock.now()); // the first call opens the file
    const changedAtMs = await reader.call('lastEventAtMs', undefined, clock.now());
    const jumpedAtMs = await reader.call('clockJumpedAtMs', undefined, clock.now());
    const guard = new TimeGuard({ clock, log, ...definedOf({ changedAtMs, jumpedAtMs }) });
    const storeId = await reader.call('storeId', undefined, clock.now());
    const blobs = options.blobs && new TrajectoryBlobs(options.blobs, storeId);
    const lastEventId = () => reader.call('lastEventId', undefined, clock.now());
    const readSize = async () => {
      const [onDisk, reusableBytes] = await Promise.all([readStoreSize(path), reader.call('reusableBytes', undefined, clock.now())]);
      return { ...onDisk, reusableBytes };
    };
    const hints = new Hints({ log, lastEventId, watch: (onChange) => watchHints(path, { log, onChange }) });
    const links = { writer: observeLink<Writes>(writer, options.observer), reader: observeLink<Reads>(reader, options.observer) };
    return new RowStore({ clock, ...links, guard, budget: new DiskBudget(limits), blobs, hints, readSize });
  } catch (error) {
    await Promise.all([reader[Symbol.asyncDispose](), writer[Symbol.asyncDispose]()]);
    throw error;
  }
}
