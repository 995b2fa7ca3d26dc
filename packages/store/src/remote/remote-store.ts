// The store of a worker that reaches it through servers. What has to be written once is written once, whatever server dies when: the store
// fences a result by its attempt, and a repeated call says so.

import type { Log } from '@millrace/base/log';
import type { RolloutId, WorkerId } from '@millrace/protocol';
import { definedOf, RolloutError } from '@millrace/protocol';
import type { Claim, Ending, PackedTrajectory } from '../claim.ts';
import { packTrajectory } from '../rows/stored-trajectory.ts';
import { StoreFault } from '../store-fault.ts';
import type { WorkerStore } from '../worker-store.ts';
import { EventFollower } from './event-follower.ts';
import { type CallerOptions, ServerCaller } from './server-caller.ts';
import type { WorkerCallName, WorkerCallReply, WorkerCallRequest } from './worker-calls.ts';

/** The caller closes it. Nothing is sent before the first call. */
export function openRemoteStore(options: CallerOptions & { readonly log: Log }): WorkerStore {
  return new RemoteStore(options);
}

type AnyTrajectory = NonNullable<Ending['trajectory']>;

interface RemoteCallOptions {
  readonly attachment?: Uint8Array | undefined;
  readonly mayRepeat?: boolean;
}

class RemoteStore implements WorkerStore {
  readonly #caller: ServerCaller;
  readonly #follower: EventFollower;
  /** What each worker of this process has got from its claims. */
  readonly #claimed = new Map<WorkerId, Map<RolloutId, number>>();
  /** The workers whose last claim may have taken what this process does not know of. */
  readonly #unanswered = new Set<WorkerId>();

  constructor(options: CallerOptions) {
    this.#caller = new ServerCaller(options);
    this.#follower = new EventFollower(this.#caller, options.log);
  }

  registerWorker: WorkerStore['registerWorker'] = async (worker, options) => {
    let isAgain = false;
    const toRequest = (isRepeated: boolean) => {
      isAgain = isRepeated;
      return { ...worker, leaseMs: options.leaseMs };
    };
    try {
      await this.#caller.call({ name: 'registerWorker', toRequest });
    } catch (error) {
      // An id is that of one process only: the first call, whose reply was lost, registered it.
      if (!isAgain || !(error instanceof RolloutError) || error.code !== 'conflict') throw error;
    }
    this.#claimed.set(worker.id, new Map());
  };

  renew: WorkerStore['renew'] = async (worker, options) => {
    const { held } = options;
    if (held) this.#claimed.set(worker, new Map(held.claims.map(({ id, attempt }) => [id, attempt])));
    const claims = held?.claims.map(({ id, attempt }) => ({ id, attempt })) ?? [];
    const { leaseMs, report } = options;
    return await this.#send('renew', { worker, leaseMs, report, ...definedOf({ held: held && { ...held, claims } }) });
  };

  claim: WorkerStore['claim'] = async (worker, limit, labels = {}) => {
    const known = this.#claimed.get(worker) ?? new Map<RolloutId, number>();
    const held = () => [...known].map(([id, attempt]) => ({ id, attempt }));
    const wasUnanswered = this.#unanswered.delete(worker);
    const toRequest = (isRepeated: boolean) => ({ worker, limit, labels, ...((isRepeated || wasUnanswered) && { held: held() }) });
    try {
      const claimed = (await this.#caller.call({ name: 'claim', toRequest })) as WorkerCallReply<'claim'>;
      for (const { id, attempt } of claimed) known.set(id, attempt);
      this.#claimed.set(worker, known);
      return claimed;
    } catch (error) {
      if (wasUnanswered || (error instanceof StoreFault && error.isUnknown)) this.#unanswered.add(worker);
      throw error;
    }
  };

  move: WorkerStore['move'] = (claim, to) => this.#again('move', (isRepeated) => ({ claim: toClaim(claim), to, isRepeated }));

  endIfLost: WorkerStore['endIfLost'] = async (claim, { result, trajectory }) => {
    const { bytes: attachment, sha256 } = await toPacked(trajectory);
    return await this.#again('endIfLost', (isRepeated) => ({ claim: toClaim(claim), result, sha256, isRepeated }), attachment);
  };

  finish: WorkerStore['finish'] = async (claim, { trajectory, ...ending }) => {
    const packed = trajectory && (await toPacked(trajectory));
    const end = { ...ending, ...definedOf({ sha256: packed?.sha256 }) };
    const toRequest = (isRepeated: boolean) => ({ claim: toClaim(claim), ending: end, isRepeated });
    const isWritten = await this.#again('finish', toRequest, packed?.bytes);
    this.#forget(claim);
    return isWritten;
  };

  retry: WorkerStore['retry'] = async (claim, failure, { delayMs }) => {
    const isWritten = await this.#send('retry', { claim: toClaim(claim), failure, delayMs });
    this.#forget(claim);
    return isWritten;
  };

  release: WorkerStore['release'] = async (claim, { requires } = {}) => {
    const isWritten = await this.#send('release', { claim: toClaim(claim), ...definedOf({ requires }) });
    this.#forget(claim);
    return isWritten;
  };

  dropWorker: WorkerStore['dropWorker'] = async (worker, { maxLosses, retryDelayMs }) => {
    await this.#send('dropWorker', { worker, rules: { maxLosses, ...definedOf({ retryDelayMs }) } });
    this.#claimed.delete(worker);
  };

  /** The server that leads does it. */
  expire: WorkerStore['expire'] = async () => 0;
  workers: WorkerStore['workers'] = () => this.#send('workers', undefined);
  get: WorkerStore['get'] = (id) => this.#send('get', { id });
  backends: WorkerStore['backends'] = () => this.#send('backends', undefined);
  backendLoads: WorkerStore['backendLoads'] = () => this.#send('backendLoads', undefined);
  oldestOn: WorkerStore['oldestOn'] = (worker, caches) => this.#send('oldestOn', { worker, caches: [...caches] });
  place: WorkerStore['place'] = (rollout, { exclude, ...options }) =>
    this.#again('place', (isRepeated) => ({
      claim: toClaim(rollout),
      options: { ...options, isRepeated, ...definedOf({ exclude: exclude && [...exclude] }) },
    }));
  breakBackend: WorkerStore['breakBackend'] = async (id, report) => void (await this.#send('breakBackend', { id, ...report }));
  recoverBackend: WorkerStore['recoverBackend'] = async (id, options) => void (await this.#send('recoverBackend', { id, ...options }));
  noteProbe: WorkerStore['noteProbe'] = (id, probe) => this.#send('noteProbe', { id, probe });
  takeProbe: WorkerStore['takeProbe'] = (id, options) => this.#send('takeProbe', { id, ...options });
  noteTraffic: WorkerStore['noteTraffic'] = async ({ contexts, errors }) => {
    await this.#send('noteTraffic', {
      contexts: contexts.map(({ claim, tokens }) => ({ claim: toClaim(claim), tokens })),
      errors: [...errors],
    });
  };
  policy: WorkerStore['policy'] = () => this.#send('policy', undefined);
  reportGate: WorkerStore['reportGate'] = async (worker, report) => void (await this.#send('reportGate', { worker, ...report }));
  /** What happened is logged once or, if the reply is lost, perhaps not. */
  appendEvents: WorkerStore['appendEvents'] = async (events) =>
    void (await this.#send('appendEvents', { events: [...events] }, { mayRepeat: false }));
  events: WorkerStore['events'] = async (after, { limit, kinds }) =>
    this.#follower.read(after, definedOf({ limit, kinds })) ??
    (await this.#send('events', { after, limit, ...definedOf({ kinds: kinds && [...kinds] }) }));
  lastEventId: WorkerStore['lastEventId'] = () => this.#send('lastEventId', undefined);
  onHint: WorkerStore['onHint'] = (listener) => this.#follower.subscribe(listener);
  appendTurns: WorkerStore['appendTurns'] = (worker, appends) =>
    this.#send('appendTurns', {
      worker,
      appends: appends.map(({ turns, ...append }) => ({
        ...append,
        turns: turns.map(({ turn, body }) => ({ turn, body: Buffer.from(body).toString('base64') })),
      })),
    });
  loggedTurns: WorkerStore['loggedTurns'] = async (claim) =>
    (await this.#send('loggedTurns', toClaim(claim))).map(({ body, ...turn }) => ({ ...turn, body: Buffer.from(body, 'base64') }));

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#follower[Symbol.asyncDispose]();
    await this.#caller[Symbol.asyncDispose]();
  }

  #forget({ worker, id, attempt }: Claim): void {
    const known = this.#claimed.get(worker);
    if (known?.get(id) === attempt) known.delete(id);
  }

  async #send<Name extends WorkerCallName>(
    name: Name,
    request: WorkerCallRequest<Name>,
    options: RemoteCallOptions = {},
  ): Promise<WorkerCallReply<Name>> {
    return (await this.#caller.call({ name, toRequest: () => request, ...options })) as WorkerCallReply<Name>;
  }

  /** For calls that have to know that they, or moves before them, may be lost: since a first reply was. */
  async #again<Name extends WorkerCallName>(
    name: Name,
    toRequest: (isRepeated: boolean) => WorkerCallRequest<Name>,
    attachment?: Uint8Array,
  ): Promise<WorkerCallReply<Name>> {
    const caller = this.#caller;
    const value = await caller.call({ name, attachment, toRequest: (isRepeated) => toRequest(isRepeated || caller.hasLost) });
    return value as WorkerCallReply<Name>;
  }
}

async function toPacked(trajectory: AnyTrajectory): Promise<PackedTrajectory> {
  return 'bytes' in trajectory ? trajectory : await packTrajectory(trajectory);
}

/** A claimed rollout has more than its claim. */
function toClaim({ id, worker, attempt }: Claim): Claim {
  return { id, worker, attempt };
}
