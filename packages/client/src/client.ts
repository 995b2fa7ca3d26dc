// The client of the HTTP API. Every call is safe to repeat and survives a restart of the service that takes up to `timeoutMs`. Every
// error is a RolloutError: with the service's code, `unreachable` if no reply came, or `internal` if the reply cannot be read.

import {
  type BackendView,
  backendList,
  backendView,
  type CancelOutcome,
  cancelReply,
  definedOf,
  type Event,
  fromBinary,
  isTerminal,
  type JoinInput,
  type MachineView,
  machineList,
  mostListed,
  type PauseInput,
  type PolicyView,
  policyView,
  type ResumeInput,
  RolloutError,
  type RolloutState,
  type RolloutView,
  rolloutList,
  rolloutView,
  routes,
  type ServiceStatus,
  type SubmissionInput,
  serviceStatus,
  type Trajectory,
  toPath,
  trajectoryMediaType,
  type WorkerSettings,
  workerSettings,
} from '@millrace/protocol';
import { type Batches, openBatches } from './batches.ts';
import { type Evaluations, openEvaluations } from './evaluations.ts';
import { readEvents } from './events.ts';
import { type Forks, openForks } from './forks.ts';
import { followResults } from './results.ts';
import { type Run, runAll } from './run.ts';
import { type Accepted, checkAll, type SubmissionFault, type SubmitOptions, submitAll, toIdentified, toRolloutId } from './submit.ts';
import { type CallOptions, Transport, toReadError } from './transport.ts';

export interface ClientOptions {
  readonly url: string;
  readonly key?: string;
  /** How long a service that does not answer is retried. Default: 30 s. */
  readonly timeoutMs?: number;
}

export interface ListOptions extends CallOptions {
  readonly state?: RolloutState;
  readonly group?: string;
  readonly scenario?: string;
  /** Rollouts of this batch. */
  readonly batch?: string;
  /** Rollouts whose id begins with this, in the order of their ids. */
  readonly prefix?: string;
  /** Which submission comes first; the oldest by default. */
  readonly order?: 'oldest' | 'newest';
  /** At most this many; all by default. */
  readonly limit?: number;
}

export interface Client extends Forks, AsyncDisposable {
  /** Sends pieces of at most 1000. Safe to repeat with the same ids. */
  submit(submissions: readonly SubmissionInput[], options?: SubmitOptions): Promise<readonly Accepted[]>;
  /** Every fault that `submit` would refuse. Nothing is stored. */
  check(submissions: readonly SubmissionInput[], options?: CallOptions): Promise<readonly SubmissionFault[]>;
  get(id: string, options?: CallOptions): Promise<RolloutView>;
  /** Resolves when the rollout has ended. */
  wait(id: string, options?: CallOptions): Promise<RolloutView>;
  /** Oldest submission first, unless the options say otherwise. */
  list(options?: ListOptions): AsyncIterable<RolloutView>;
  trajectory(id: string, options?: CallOptions): Promise<Trajectory>;
  cancel(id: string, options?: CallOptions): Promise<CancelOutcome>;
  /** Submits the task of a rollout that ended without a reward again, as `ID.1`, `ID.2`, …. Safe to repeat while that has not ended. */
  retry(id: string, options?: CallOptions): Promise<RolloutView>;
  /** Each of these rollouts once, in the order in which they end. `after`, an event id from before they were submitted, saves one read each. */
  results(ids: readonly string[], options?: CallOptions & { readonly after?: number }): AsyncIterable<RolloutView>;
  /** Submits, and yields each rollout as it ends. A refusal is thrown after what was accepted before it has ended. Iterate it once. */
  run(submissions: readonly SubmissionInput[], options?: CallOptions): Promise<Run>;
  /** Events from now on, or after an event id. Never ends on its own. */
  events(options?: CallOptions & { readonly after?: number }): AsyncIterable<Event>;
  status(options?: CallOptions): Promise<ServiceStatus>;
  /** The machines with workers; those that are gone are shown for ten minutes. */
  machines(options?: CallOptions): Promise<readonly MachineView[]>;
  /** What a worker on another machine needs, with the password of the store. The key must have every right. */
  workerSettings(options?: CallOptions & { readonly wire?: number }): Promise<WorkerSettings>;
  readonly policy: {
    get(options?: CallOptions): Promise<PolicyView>;
    /** Resolves when no request is being sampled. */
    pause(pause?: PauseInput, options?: CallOptions): Promise<PolicyView>;
    /** Resumes sampling. A `policy_version` becomes the version of all backends. */
    resume(resume?: ResumeInput, options?: CallOptions): Promise<PolicyView>;
  };
  readonly batches: Batches;
  readonly evaluations: Evaluations;
  readonly backends: {
    join(backend: JoinInput): Promise<BackendView>;
    list(): Promise<readonly BackendView[]>;
    drain(id: string): Promise<BackendView>;
    leave(id: string): Promise<void>;
  };
}

const pollSeconds = 25;

export function openClient(options: ClientOptions): Client {
  const transport = new Transport({ timeoutMs: 30_000, ...options });
  const one = (id: string) => toPath(routes.getRollout.path, { id });

  const get = (id: string, callOptions: CallOptions = {}) => transport.json({ method: 'GET', path: one(id), ...callOptions }, rolloutView);
  const status = (callOptions: CallOptions = {}) =>
    transport.json({ method: 'GET', path: routes.getStatus.path, ...callOptions }, serviceStatus);
  const cancel = async (id: string, callOptions: CallOptions = {}) =>
    (await transport.json({ method: 'DELETE', path: one(id), ...callOptions }, cancelReply)).cancel;
  const reader = { transport, get, cancel };

  async function wait(id: string, callOptions: CallOptions = {}): Promise<RolloutView> {
    const poll = { method: 'GET', path: one(id), query: { wait: pollSeconds }, waitMs: pollSeconds * 1000, ...callOptions } as const;
    for (;;) {
      const view = await transport.json(poll, rolloutView);
      if (isTerminal(view.state)) return view;
    }
  }

  async function* results(ids: readonly string[], { after, ...callOptions }: CallOptions & { readonly after?: number } = {}) {
    const wanted = ids.map(toRolloutId);
    const from = after ?? (await status(callOptions)).last_event_id;
    const followed = followResults(reader, wanted, { after: from, ...callOptions });
    if (after === undefined) followed.check(wanted);
    yield* followed;
  }

  async function* events({ after, ...callOptions }: CallOptions & { readonly after?: number } = {}) {
    yield* readEvents(transport, { after: after ?? (await status(callOptions)).last_event_id, ...callOptions });
  }

  return {
    submit: (submissions, options) => submitAll(transport, toIdentified(submissions), options),
    check: (submissions, callOptions) => checkAll(transport, submissions, callOptions),
    get,
    wait,
    list: (options) => readPages(transport, options ?? {}),
    trajectory: (id, callOptions) => readTrajectory(transport, id, callOptions ?? {}),
    cancel,
    retry: (id, callOptions = {}) =>
      transport.json({ method: 'POST', path: toPath(routes.retryRollout.path, { id }), ...callOptions }, rolloutView),
    ...openForks(transport),
    results,
    async run(submissions, callOptions = {}) {
      const after = (await status(callOptions)).last_event_id;
      return runAll(reader, toIdentified(submissions), { after, ...callOptions });
    },
    events,
    status,
    machines: async (callOptions = {}) =>
      (await transport.json({ method: 'GET', path: routes.listMachines.path, ...callOptions }, machineList)).machines,
    workerSettings: ({ wire, ...callOptions } = {}) =>
      transport.json({ method: 'GET', path: routes.getJoin.path, query: { wire }, ...callOptions }, workerSettings),
    policy: openPolicy(transport),
    batches: openBatches(transport),
    evaluations: openEvaluations(transport),
    backends: openBackends(transport),
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  };
}

function openPolicy(transport: Transport): Client['policy'] {
  const { getPolicy, pausePolicy, resumePolicy } = routes;
  return {
    get: (callOptions = {}) => transport.json({ method: 'GET', path: getPolicy.path, ...callOptions }, policyView),
    async pause(body = {}, callOptions = {}) {
      const poll = { query: { wait: pollSeconds }, waitMs: pollSeconds * 1000, body, ...callOptions };
      for (;;) {
        const view = await transport.json({ method: 'POST', path: pausePolicy.path, ...poll }, policyView);
        if (view.state !== 'pausing') return view;
      }
    },
    resume: (body = {}, callOptions = {}) => transport.json({ method: 'POST', path: resumePolicy.path, body, ...callOptions }, policyView),
  };
}

function openBackends(transport: Transport): Client['backends'] {
  const { joinBackend, listBackends, drainBackend, leaveBackend } = routes;
  return {
    join: (backend) => transport.json({ method: 'POST', path: joinBackend.path, body: backend }, backendView),
    list: async () => (await transport.json({ method: 'GET', path: listBackends.path }, backendList)).backends,
    drain: (id) => transport.json({ method: 'POST', path: toPath(drainBackend.path, { id }) }, backendView),
    leave: async (id) => void (await transport.bytes({ method: 'DELETE', path: toPath(leaveBackend.path, { id }) })),
  };
}

async function* readPages(
  transport: Transport,
  { signal, limit = Number.POSITIVE_INFINITY, ...filter }: ListOptions,
): AsyncGenerator<RolloutView> {
  let after: string | undefined;
  let left = limit;
  do {
    const query = { ...filter, limit: Math.min(left, mostListed), after };
    const page = await transport.json({ method: 'GET', path: routes.listRollouts.path, query, ...definedOf({ signal }) }, rolloutList);
    yield* page.rollouts;
    left -= page.rollouts.length;
    after = page.next ?? undefined;
  } while (after !== undefined && left > 0);
}

/** Refuses bytes that were changed on their way, and those of another rollout. */
async function readTrajectory(transport: Transport, id: string, callOptions: CallOptions): Promise<Trajectory> {
  const path = toPath(routes.getTrajectory.path, { id });
  const bytes = await transport.bytes({ method: 'GET', path, headers: { accept: trajectoryMediaType }, ...callOptions });
  try {
    const trajectory = fromBinary(bytes);
    if (trajectory.rolloutId === id) return trajectory;
    throw new RolloutError('trajectory-corrupt', `it is the trajectory of rollout ${trajectory.rolloutId}`);
  } catch (cause) {
    throw toReadError(path, cause);
  }
}
