// A store whose data are rows of a SQL database: it turns each call of the contract into one operation, which the engine runs in a
// transaction. What is large or slow (serializing, compressing, blobs) happens here, outside of any transaction.

import { type Clock, systemClock } from '@millrace/base/clock';
import { definedOf, fromBinary } from '@millrace/protocol';
import { type BlobRows, missingBlob, readChecksum, sweepAfterMs, type TrajectoryBlobs } from '../blobs/trajectory-blobs.ts';
import type { Claim, Ending, PackedTrajectory } from '../claim.ts';
import type { DiskBudget } from '../disk-budget.ts';
import type { Store, StoreSize } from '../store.ts';
import { StoreFault } from '../store-fault.ts';
import type { TimeGuard } from '../time-guard.ts';
import { dropTexts, type KeptTrajectory } from './drop-texts.ts';
import type { OperationLink, ReplyOf } from './operation-link.ts';
import type { Reads, Writes } from './operations.ts';
import { longestAge, type RetentionCalls, runRetention } from './run-retention.ts';
import { packTrajectory, unpackTrajectory } from './stored-trajectory.ts';
import { toStored } from './to-stored.ts';
import { openTrainerRows } from './trainer-rows.ts';

/** How old a size may be that a claim relies on. */
const sizeFreshMs = 1000;

interface StoreHints extends Disposable {
  subscribe(listener: () => void): () => void;
}

interface RowStoreParts {
  readonly clock: Clock;
  readonly writer: OperationLink<Writes>;
  readonly reader: OperationLink<Reads>;
  readonly guard: TimeGuard;
  readonly budget: DiskBudget;
  readonly blobs: TrajectoryBlobs | undefined;
  readonly hints: StoreHints;
  /** Where events are numbered after they were committed. */
  readonly sequencer?: AsyncDisposable;
  readSize(): Promise<Omit<StoreSize, 'full'>>;
}

export class RowStore implements Store {
  readonly #parts: RowStoreParts;
  readonly trainer: Store['trainer'];
  #hasNotedDoubt = false;
  #checkedAt = Number.NEGATIVE_INFINITY;
  #wasFull = false;

  constructor(parts: RowStoreParts) {
    this.#parts = parts;
    this.trainer = openTrainerRows({
      read: (name, request) => this.#read(name, request),
      write: (name, request) => this.#write(name, request),
    });
  }

  submit: Store['submit'] = async (rollouts, options) => {
    const { full } = await this.size();
    return await this.#write('submit', { rollouts: await toStored(rollouts), ...options, full });
  };
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
    if (!stored) return undefined;
    const { attempt } = stored;
    if (!stored.blob) return unpackTrajectory(stored.body, { id, attempt });
    const { blobs } = this.#parts;
    if (!blobs) throw missingBlob(id, 'it is in a blob store, and store.blobs names none');
    try {
      return await unpackTrajectory(await blobs.get(id, stored.blob), { id, attempt, sha256: readChecksum(stored.blob) });
    } catch (error) {
      // Retention may have deleted or replaced it meanwhile.
      const now = await this.#read('trajectory', id);
      if (now?.blob === stored.blob) throw error;
      return now && (await this.binaryTrajectory(id));
    }
  };

  registerWorker: Store['registerWorker'] = (worker, { leaseMs }) => this.#write('registerWorker', { ...worker, leaseMs });
  renew: Store['renew'] = (worker, options) => this.#write('renew', { worker, ...options });
  claim: Store['claim'] = async (worker, limit, labels = {}) =>
    (await this.#isFull()) ? [] : this.#write('claim', { worker, limit, labels });
  unanswered: Store['unanswered'] = (worker, named) => this.#read('unanswered', { worker, named });
  move: Store['move'] = (claim, to, { isRepeated = false } = {}) => this.#write('move', { claim, to, isRepeated });
  endIfLost: Store['endIfLost'] = (claim, { trajectory, result }, options = {}) =>
    this.#writeKept(claim, trajectory, (kept) => this.#write('endIfLost', { claim, result, ...kept, ...options }));
  finish: Store['finish'] = async (claim, { trajectory, ...ending }, { isRepeated = false } = {}) => {
    // Before another blob is written for it.
    if (isRepeated && (await this.#read('hasEndedSo', { claim, ending }))) return true;
    return await this.#writeKept(claim, trajectory, (kept) => this.#write('finish', { claim, ending: { ...ending, ...kept }, isRepeated }));
  };
  retry: Store['retry'] = (claim, failure, { delayMs }) => this.#write('retry', { claim, failure, delayMs });
  release: Store['release'] = (claim, { requires = {} } = {}) => this.#write('release', { claim, requires });
  dropWorker: Store['dropWorker'] = (worker, { maxLosses, retryDelayMs = 0 }) =>
    this.#write('dropWorker', { worker, rules: { maxLosses, retryDelayMs } });

  expire: Store['expire'] = async ({ leaseMs, maxLosses, retryDelayMs = 0 }) => {
    const { guard, clock } = this.#parts;
    // Taken before the call waits: a lease that was renewed while it waited is not late.
    const asOfMs = clock.now();
    const hasLate = await this.#read('hasLateWorkers', { asOfMs, leaseMs });
    // After the look: it may have found out that the store was away.
    if (!guard.doubtsLeases(leaseMs))
      return hasLate ? await this.#write('expire', { rules: { maxLosses, retryDelayMs }, leaseMs, asOfMs }) : 0;
    if (guard.hasJumped) await this.#write('noteClockJump', undefined);
    if (await this.#write('restartLeases', { leaseMs })) guard.trustLeases();
    return 0;
  };

  workers: Store['workers'] = () => this.#read('workers', undefined);
  joinBackend: Store['joinBackend'] = (backend) => this.#write('joinBackend', backend);
  drainBackend: Store['drainBackend'] = (id) => this.#write('drainBackend', id);
  leaveBackend: Store['leaveBackend'] = (id) => this.#write('leaveBackend', id);
  clearBackends: Store['clearBackends'] = () => this.#write('clearBackends', undefined);
  backends: Store['backends'] = () => this.#read('backends', undefined);
  backendLoads: Store['backendLoads'] = () => this.#read('backendLoads', undefined);
  oldestOn: Store['oldestOn'] = (worker, caches) => this.#read('oldestOn', { worker, caches });
  place: Store['place'] = (claim, { isRepeated = false, ...options }) => this.#write('place', { claim, options, isRepeated });
  breakBackend: Store['breakBackend'] = (id, options) => this.#write('breakBackend', { id, ...options });
  recoverBackend: Store['recoverBackend'] = (id, options) => this.#write('recoverBackend', { id, ...options });
  noteProbe: Store['noteProbe'] = (id, probe) => this.#write('noteProbe', { id, probe });
  takeProbe: Store['takeProbe'] = (id, options) => this.#write('takeProbe', { id, ...options });
  noteTraffic: Store['noteTraffic'] = (notes) => this.#write('noteTraffic', notes);
  policy: Store['policy'] = () => this.#read('policy', undefined);
  pausePolicy: Store['pausePolicy'] = (request) => this.#write('pausePolicy', request);
  resumePolicy: Store['resumePolicy'] = (request) => this.#write('resumePolicy', request);
  reportGate: Store['reportGate'] = (worker, report) => this.#write('reportGate', { worker, ...report });

  createBatch: Store['createBatch'] = async (batch) => this.#write('createBatch', { ...batch, full: (await this.size()).full });
  appendTasks: Store['appendTasks'] = async (id, more) => this.#write('appendTasks', { id, ...more, full: (await this.size()).full });
  batch: Store['batch'] = (id) => this.#read('batch', id);
  batches: Store['batches'] = (filter) => this.#read('batches', filter);
  endBatch: Store['endBatch'] = (id, state, seen) => this.#write('endBatch', { id, state, ...definedOf({ seen }) });
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
  holdWebhook: Store['holdWebhook'] = (hold) => this.#write('holdWebhook', hold);
  noteWebhook: Store['noteWebhook'] = (sent) => this.#write('noteWebhook', sent);

  createEvaluation: Store['createEvaluation'] = async (plan) =>
    this.#write('createEvaluation', { ...plan, full: (await this.size()).full });
  evaluation: Store['evaluation'] = (id) => this.#read('evaluation', id);
  evaluations: Store['evaluations'] = (filter) => this.#read('evaluations', filter);
  evaluationTasks: Store['evaluationTasks'] = (id, page) => this.#read('evaluationTasks', { id, ...page });
  unbegunEvaluations: Store['unbegunEvaluations'] = () => this.#read('unbegunEvaluations', undefined);
  beginTasks: Store['beginTasks'] = async (id, { begun, samples }) =>
    this.#write('beginTasks', { id, begun, samples: await Promise.all(samples.map(toStored)) });
  retryUnscored: Store['retryUnscored'] = async (id, { limit }) =>
    this.#write('retryUnscored', { id, limit, full: (await this.size()).full });
  cancelEvaluation: Store['cancelEvaluation'] = (id) => this.#write('cancelEvaluation', id);

  takeDuty: Store['takeDuty'] = (request) => this.#write('takeDuty', request);
  prorlState: Store['prorlState'] = () => this.#read('prorlState', undefined);
  noteProrl: Store['noteProrl'] = (change) => this.#write('noteProrl', change);
  openProrlJob: Store['openProrlJob'] = (job) => this.#write('openProrlJob', job);
  adoptProrlJob: Store['adoptProrlJob'] = (job) => this.#write('adoptProrlJob', job);
  renewProrlJobs: Store['renewProrlJobs'] = (request) => this.#write('renewProrlJobs', request);
  closeProrlJob: Store['closeProrlJob'] = (rollout) => this.#write('closeProrlJob', rollout);
  prorlJobs: Store['prorlJobs'] = (name) => this.#read('prorlJobs', name);

  appendTurns: Store['appendTurns'] = (worker, appends) => this.#write('appendTurns', { worker, appends });
  loggedTurns: Store['loggedTurns'] = (claim) => this.#read('loggedTurns', claim);
  savedTurns: Store['savedTurns'] = (id) => this.#read('savedTurns', id);
  appendEvents: Store['appendEvents'] = (events) => this.#write('appendEvents', events);
  events: Store['events'] = (after, options) => this.#read('events', { after, ...options });
  lastEventId: Store['lastEventId'] = () => this.#read('lastEventId', undefined);
  oldestEventId: Store['oldestEventId'] = () => this.#read('oldestEventId', undefined);
  onHint: Store['onHint'] = (listener) => this.#parts.hints.subscribe(listener);

  size: Store['size'] = async () => {
    const used = await this.#parts.readSize();
    const size = { ...used, freeBytes: Math.min(used.freeBytes, (await this.#parts.blobs?.freeBytes()) ?? used.freeBytes) };
    return definedOf({ ...size, full: this.#parts.budget.judge(size) });
  };
  checkHealth: Store['checkHealth'] = async () => {
    await this.#write('touch', undefined);
    await this.#parts.blobs?.check();
    return await this.size();
  };

  retain: Store['retain'] = async (ages) => {
    const { guard, clock, reader, writer } = this.#parts;
    const keptMs = longestAge(ages);
    if (!guard.mayRetain(keptMs)) {
      if (guard.hasDoubts(keptMs)) await this.#noteDoubt();
      return 0;
    }
    const write = async <Name extends keyof Writes>(name: Name, request: Parameters<Writes[Name]>[1]): Promise<ReplyOf<Writes, Name>> => {
      const { value, lockMs } = await guard.time(writer.timedCall(name, request, clock.now()));
      ages.onStep?.(lockMs);
      return value;
    };
    const read: RetentionCalls['read'] = (name, request) => reader.call(name, request, clock.now());
    const asOfMs = clock.now();
    const deleted = await runRetention(ages, { asOfMs, read, write });
    if (ages.textMs === undefined) return deleted;
    const beforeMs = asOfMs - ages.textMs;
    await dropTexts({
      find: (after) => this.#read('trajectoriesWithText', { beforeMs, after, limit: 50 }),
      read: this.trajectory,
      keep: (of, packed) => this.#keep(of, packed),
      replace: (seq, kept) => write('replaceText', { seq, ...kept }),
      discard: (kept) => this.#discard(kept),
    });
    return deleted;
  };

  /** Once: retention waits from the first time on. */
  async #noteDoubt(): Promise<void> {
    if (this.#hasNotedDoubt) return;
    await this.#write('noteClockJump', undefined);
    this.#hasNotedDoubt = true;
  }

  /** The trajectory is stored before `write`, and is discarded if that writes nothing. */
  async #writeKept(claim: Claim, trajectory: Ending['trajectory'], write: (kept: KeptTrajectory) => Promise<boolean>): Promise<boolean> {
    const kept = trajectory ? await this.#keep(claim, 'bytes' in trajectory ? trajectory : await packTrajectory(trajectory)) : {};
    try {
      const isWritten = await write(kept);
      if (!isWritten) await this.#discard(kept);
      return isWritten;
    } catch (error) {
      // After any other error, the row may have been written.
      if (error instanceof StoreFault && !error.isUnknown) await this.#discard(kept);
      throw error;
    }
  }

  /** In its row, or as a blob, which is written at once. */
  async #keep(claim: Pick<Claim, 'id' | 'attempt'>, packed: PackedTrajectory): Promise<KeptTrajectory> {
    const { blobs } = this.#parts;
    const { bytes } = packed;
    return blobs ? { blob: { key: await blobs.put(claim, packed), bytes: bytes.length } } : { trajectory: bytes };
  }

  async #discard({ blob }: KeptTrajectory): Promise<void> {
    if (blob) await this.#parts.blobs?.discard(blob.key);
  }

  removeBlobs: Store['removeBlobs'] = async ({ sweep }) => {
    const { blobs, guard, clock } = this.#parts;
    if (!blobs) return 0;
    const rows: BlobRows = {
      readGarbage: (limit) => this.#read('blobGarbage', limit),
      forgetGarbage: (keys) => this.#write('forgetGarbage', keys),
      findKnown: (keys) => this.#read('knownBlobs', keys),
    };
    const removed = await blobs.removeGarbage(rows);
    return sweep && guard.mayRetain(sweepAfterMs) ? removed + (await blobs.sweep(rows, clock.now())) : removed;
  };

  /** The writer closes last: only it can checkpoint the WAL of SQLite. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#parts.hints[Symbol.dispose]();
    await this.#parts.sequencer?.[Symbol.asyncDispose]();
    for (const link of [this.#parts.reader, this.#parts.writer]) await link[Symbol.asyncDispose]();
  }

  /** Claims are frequent, so they rely on a size that was read within the last second. */
  async #isFull(): Promise<boolean> {
    const now = systemClock.monotonic();
    if (now - this.#checkedAt < sizeFreshMs) return this.#wasFull;
    this.#checkedAt = now;
    this.#wasFull = (await this.size()).full !== undefined;
    return this.#wasFull;
  }

  #write<Name extends keyof Writes>(name: Name, request: Parameters<Writes[Name]>[1]): Promise<ReplyOf<Writes, Name>> {
    const { writer, guard, clock } = this.#parts;
    return guard.time(writer.call(name, request, clock.now()));
  }

  #read<Name extends keyof Reads>(name: Name, request: Parameters<Reads[Name]>[1]): Promise<ReplyOf<Reads, Name>> {
    return this.#parts.reader.call(name, request, this.#parts.clock.now());
  }
}
