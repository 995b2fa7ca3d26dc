// The SQLite store: two threads, so that no query or fsync runs on the event loop. The writer commits all pending calls in one
// transaction; the reader never waits for a commit. Any number of processes can open the same file.

import { scheduler } from 'node:timers/promises';
import { definedOf, fromBinary, toBinary } from '@millrace/protocol';
import { type Clock, systemClock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { NewRollout } from '../rollout-record.ts';
import type { Ending, Store } from '../store.ts';
import { TimeGuard } from '../time-guard.ts';
import { compress, decompress } from './compression.ts';
import { Hints } from './engine/hint.ts';
import { networkFileSystemOf } from './engine/network-file-system.ts';
import { readStoreSize } from './engine/store-size.ts';
import { ThreadLink } from './link.ts';
import type { RetainedSlice } from './operations/retention.ts';
import type { StoredSubmission } from './operations/submit.ts';
import type { StoredEnding } from './operations/transitions.ts';
import type { Reads, Writes } from './operations.ts';

interface StoreParts {
  readonly path: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly writer: ThreadLink<keyof Writes, Writes>;
  readonly reader: ThreadLink<keyof Reads, Reads>;
  readonly guard: TimeGuard;
}

export interface SqliteStoreOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Called when a thread of the store has died. No call can succeed any more: the process should exit. */
  readonly onDeath?: (error: Error) => void;
}

/** Opens the file, or creates it and its folders. The caller closes the store. */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const { path, clock, log, onDeath = () => {} } = options;
  const network = networkFileSystemOf(path);
  if (network) log.warn('store-on-network-file-system', { path, type: network });
  const threads = { path, hasOwnTime: clock === systemClock };
  const writer: StoreParts['writer'] = new ThreadLink({ ...threads, role: 'writer' }, onDeath);
  const reader: StoreParts['reader'] = new ThreadLink({ ...threads, role: 'reader' }, onDeath);
  try {
    await writer.call('appendEvents', [], clock.now()); // the first call opens the file
    const changedAtMs = await reader.call('lastEventAtMs', undefined, clock.now());
    const guard = new TimeGuard({ clock, log, ...definedOf({ changedAtMs }) });
    return new SqliteStore({ path, clock, log, writer, reader, guard });
  } catch (error) {
    await Promise.all([reader[Symbol.asyncDispose](), writer[Symbol.asyncDispose]()]);
    throw error;
  }
}

class SqliteStore implements Store {
  readonly #parts: StoreParts;
  readonly #hints: Hints;

  constructor(parts: StoreParts) {
    this.#parts = parts;
    this.#hints = new Hints({ path: parts.path, log: parts.log, lastEventId: () => this.lastEventId() });
  }

  submit: Store['submit'] = async (rollouts, options) => this.#write('submit', { rollouts: await toStored(rollouts), ...options });
  cancel: Store['cancel'] = (id, { tombstoneMs }) => this.#write('cancel', { id, tombstoneMs });
  get: Store['get'] = (id) => this.#read('get', id);
  list: Store['list'] = (filter) => this.#read('list', filter);
  counts: Store['counts'] = () => this.#read('counts', undefined);
  classes: Store['classes'] = () => this.#read('classes', undefined);

  trajectory: Store['trajectory'] = async (id) => {
    const bytes = await this.binaryTrajectory(id);
    return bytes && fromBinary(bytes);
  };

  binaryTrajectory: Store['binaryTrajectory'] = async (id) => {
    const stored = await this.#read('trajectory', id);
    return stored && decompress(stored);
  };

  registerWorker: Store['registerWorker'] = (worker, { leaseMs }) => this.#write('registerWorker', { ...worker, leaseMs });
  renew: Store['renew'] = (worker, options) => this.#write('renew', { worker, ...options });
  claim: Store['claim'] = (worker, limit) => this.#write('claim', { worker, limit });
  move: Store['move'] = (claim, to) => this.#write('move', { claim, to });
  finish: Store['finish'] = async (claim, ending) => this.#write('finish', { claim, ending: await toStoredEnding(ending) });
  retry: Store['retry'] = (claim, failure, { delayMs }) => this.#write('retry', { claim, failure, delayMs });
  release: Store['release'] = (claim) => this.#write('release', claim);
  dropWorker: Store['dropWorker'] = (worker, { maxLosses, retryDelayMs = 0 }) =>
    this.#write('dropWorker', { worker, rules: { maxLosses, retryDelayMs } });

  expire: Store['expire'] = async ({ leaseMs, maxLosses, retryDelayMs = 0 }) => {
    const { guard, clock } = this.#parts;
    // Taken before the call waits: a lease that was renewed while it waited is not late.
    const asOfMs = clock.now();
    if (!guard.doubtsLeases(leaseMs)) return await this.#write('expire', { rules: { maxLosses, retryDelayMs }, asOfMs });
    await this.#write('restartLeases', { leaseMs });
    guard.trustLeases();
    return 0;
  };

  workers: Store['workers'] = () => this.#read('workers', undefined);

  joinBackend: Store['joinBackend'] = (backend) => this.#write('joinBackend', backend);
  drainBackend: Store['drainBackend'] = (id) => this.#write('drainBackend', id);
  leaveBackend: Store['leaveBackend'] = (id) => this.#write('leaveBackend', id);
  clearBackends: Store['clearBackends'] = () => this.#write('clearBackends', undefined);
  backends: Store['backends'] = () => this.#read('backends', undefined);
  backendLoads: Store['backendLoads'] = () => this.#read('backendLoads', undefined);
  place: Store['place'] = (claim, options) => this.#write('place', { claim, options });
  breakBackend: Store['breakBackend'] = (id, options) => this.#write('breakBackend', { id, ...options });
  recoverBackend: Store['recoverBackend'] = (id) => this.#write('recoverBackend', id);
  noteProbe: Store['noteProbe'] = (id, probe) => this.#write('noteProbe', { id, probe });
  takeProbe: Store['takeProbe'] = (id) => this.#write('takeProbe', id);
  noteTraffic: Store['noteTraffic'] = (notes) => this.#write('noteTraffic', notes);

  policy: Store['policy'] = () => this.#read('policy', undefined);
  pausePolicy: Store['pausePolicy'] = (request) => this.#write('pausePolicy', request);
  resumePolicy: Store['resumePolicy'] = (request) => this.#write('resumePolicy', request);
  reportGate: Store['reportGate'] = (worker, report) => this.#write('reportGate', { worker, ...report });

  createBatch: Store['createBatch'] = (batch) => this.#write('createBatch', batch);
  appendTasks: Store['appendTasks'] = (id, more) => this.#write('appendTasks', { id, ...more });
  batch: Store['batch'] = (id) => this.#read('batch', id);
  batches: Store['batches'] = (filter) => this.#read('batches', filter);
  endBatch: Store['endBatch'] = (id, state) => this.#write('endBatch', { id, state });
  resumeBatch: Store['resumeBatch'] = (id) => this.#write('resumeBatch', id);
  openBatches: Store['openBatches'] = () => this.#read('openBatches', undefined);
  openGroups: Store['openGroups'] = (batch) => this.#read('openGroups', batch);
  groupTask: Store['groupTask'] = (group) => this.#read('groupTask', group);
  surplusGroups: Store['surplusGroups'] = (batch, limit) => this.#read('surplusGroups', { batch, limit });
  queuedTasks: Store['queuedTasks'] = (batch, limit) => this.#read('queuedTasks', { batch, limit });
  cursor: Store['cursor'] = (name) => this.#read('cursor', name);
  load: Store['load'] = (batch) => this.#read('load', batch);
  beginGroup: Store['beginGroup'] = async (group) => this.#write('beginGroup', { ...group, rollouts: await toStored(group.rollouts) });
  takeGroup: Store['takeGroup'] = async (batch, group, rollouts) =>
    this.#write('takeGroup', { batch, group, rollouts: await toStored(rollouts) });
  renewGroup: Store['renewGroup'] = (batch, group) => this.#write('renewGroup', { batch, group });
  replaceSiblings: Store['replaceSiblings'] = async (group, rollouts) =>
    this.#write('replaceSiblings', { group, rollouts: await toStored(rollouts) });
  settleGroup: Store['settleGroup'] = (settlement) => this.#write('settleGroup', settlement);
  deliveredGroups: Store['deliveredGroups'] = (batch, options) => this.#read('deliveredGroups', { batch, ...options });
  ack: Store['ack'] = (batch, consumer, through) => this.#write('ack', { batch, consumer, through });
  acked: Store['acked'] = (batch, consumer) => this.#read('acked', { batch, consumer });
  dueWebhooks: Store['dueWebhooks'] = () => this.#read('dueWebhooks', undefined);
  noteWebhook: Store['noteWebhook'] = (sent) => this.#write('noteWebhook', sent);

  appendEvents: Store['appendEvents'] = (events) => this.#write('appendEvents', events);
  events: Store['events'] = (after, options) => this.#read('events', { after, ...options });
  lastEventId: Store['lastEventId'] = () => this.#read('lastEventId', undefined);
  oldestEventId: Store['oldestEventId'] = () => this.#read('oldestEventId', undefined);
  onHint: Store['onHint'] = (listener) => this.#hints.subscribe(listener);

  size: Store['size'] = () => readStoreSize(this.#parts.path);
  checkHealth: Store['checkHealth'] = async () => {
    await this.#write('touch', undefined);
    return await this.size();
  };

  retain: Store['retain'] = async ({ endedMs, eventsMs }) => {
    const { guard, clock } = this.#parts;
    const asOfMs = clock.now();
    if (!guard.mayRetain(Math.max(endedMs, eventsMs))) return 0;
    let deleted = await this.#retain(() => this.#write('retainSlice', { endedMs, eventsMs, asOfMs }));
    for (;;) {
      const expired = await this.#read('expiredBatches', { endedMs, asOfMs });
      for (const seq of expired) deleted += await this.#retain(() => this.#write('retainBatchSlice', seq));
      if (expired.length === 0) return deleted;
    }
  };

  /** Repeats one kind of slice until nothing is left; other writes run in between. */
  async #retain(slice: () => Promise<RetainedSlice>): Promise<number> {
    for (let deleted = 0; ; ) {
      const { rollouts, more } = await slice();
      deleted += rollouts;
      if (!more) return deleted;
    }
  }

  /** The writer closes last: only it can checkpoint the WAL. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#hints[Symbol.dispose]();
    await this.#parts.reader[Symbol.asyncDispose]();
    await this.#parts.writer[Symbol.asyncDispose]();
  }

  #write<Name extends keyof Writes>(name: Name, request: Parameters<Writes[Name]>[1]): Promise<ReturnType<Writes[Name]>> {
    const { writer, guard, clock } = this.#parts;
    return guard.time(writer.call(name, request, clock.now()));
  }

  #read<Name extends keyof Reads>(name: Name, request: Parameters<Reads[Name]>[1]): Promise<ReturnType<Reads[Name]>> {
    return this.#parts.reader.call(name, request, this.#parts.clock.now());
  }
}

/** Yields to the event loop between slices: serializing ten thousand tasks takes many milliseconds. */
async function toStored(rollouts: readonly NewRollout[]): Promise<StoredSubmission[]> {
  const stored: StoredSubmission[] = [];
  for (const { id, digest, submission } of rollouts) {
    const { scenario, group, priority } = submission;
    stored.push(definedOf({ id, digest, scenario, group, priority, body: JSON.stringify(submission) }));
    if (stored.length % 500 === 0) await scheduler.yield();
  }
  return stored;
}

/** Compressed on the thread pool. */
async function toStoredEnding(ending: Ending): Promise<StoredEnding> {
  const { trajectory, ...rest } = ending;
  return trajectory ? { ...rest, trajectory: await compress(toBinary(trajectory)) } : rest;
}
