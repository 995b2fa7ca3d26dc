// The stores of a configuration: that of a server, and what its workers have in place of it.

import { systemClock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import { definedOf, messageOf } from '@millrace/protocol';
import {
  type HintScope,
  openBlobs,
  openRemoteStore,
  openStore,
  type Store,
  type StoreObserver,
  toDiskLimits,
  toStoreAddress,
  type WorkerStore,
} from '@millrace/store';
import type { ServiceConfig } from './config.ts';

/** The store of a configuration. */
export async function openServiceStore(
  config: ServiceConfig,
  { log, observer }: { readonly log: Log; readonly observer?: StoreObserver },
  hints: HintScope = 'all',
): Promise<Store> {
  const limits = toDiskLimits(config.store);
  const blobs = await openBlobs(config.store.blobs, process.env);
  const onDeath = (error: Error) => exit(error, log);
  return await openStore(toStoreAddress(config), { limits, ...definedOf({ blobs, observer }), clock: systemClock, log, hints, onDeath });
}

interface WorkerStoreOptions {
  readonly log: Log;
  /** Of the service, for servers. */
  readonly key?: string | undefined;
}

/** What workers and their supervisor use: the store itself, or servers in its place. */
export async function openWorkerStore(
  config: ServiceConfig,
  { log, key }: WorkerStoreOptions,
  hints: HintScope = 'work',
): Promise<WorkerStore> {
  const { servers } = config.store;
  return servers.length === 0 ? await openServiceStore(config, { log }, hints) : openRemoteStore({ servers, key, log });
}

/** Without its store, a process would look healthy and do nothing. Its supervisor starts it again, and nothing is lost. */
function exit(error: Error, log: Log): void {
  log.error('store-thread-died', { error: messageOf(error) });
  process.exit(1);
}
