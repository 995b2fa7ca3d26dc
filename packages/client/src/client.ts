// The client of the HTTP API. Every call may be repeated safely and rides out a restart of the service of up to `timeoutMs`;
// every error is a RolloutError with the service's code, or `internal` with the address and what was seen.

import {
  type BackendView,
  backendList,
  backendView,
  type CancelOutcome,
  cancelReply,
  type Event,
  fromBinary,
  isTerminal,
  type JoinInput,
  messageOf,
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
} from '@millrace/protocol';
import { type Batches, openBatches } from './batches.ts';
import { readEvents } from './events.ts';
import { followResults } from './results.ts';
import { type Run, runAll } from './run.ts';
import { type Accepted, type SubmitOptions, submitAll, toIdentified, toRolloutId } from './submit.ts';
import { Transport } from './transport.ts';

export interface ClientOptions {
  readonly url: string;
  readonly key?: string;
  /** How long a service that does not answer is tried again; 30 s unless told. */
  readonly timeoutMs?: number;
}

interface Waiting {
  readonly signal?: AbortSignal;
}

export interface ListOptions extends Waiting {
  readonly state?: RolloutState;
  readonly group?: string;
  readonly scenario?: string;
}

export interface Client extends AsyncDisposable {
  /** In pieces of at most 1000. Repeating it with the same ids changes nothing. */
  submit(submissions: readonly SubmissionInput[], options?: SubmitOptions): Promise<readonly Accepted[]>;
  get(id: string, options?: Waiting): Promise<RolloutView>;
  /** Resolves when the rollout has ended. */
  wait(id: string, options?: Waiting): Promise<RolloutView>;
  /** In the order of submission. */
  list(options?: ListOptions): AsyncIterable<RolloutView>;
  trajectory(id: string, options?: Waiting): Promise<Trajectory>;
  cancel(id: string, options?: Waiting): Promise<CancelOutcome>;
  /** Each of these rollouts once, in the order of ending. With `after`, an event id from before they were submitted, none is asked for in vain. */
  results(ids: readonly string[], options?: Waiting & { readonly after?: number }): AsyncIterable<RolloutView>;
  /** Submits and yields each rollout as it ends; iterate it once. */
  run(submissions: readonly SubmissionInput[], options?: Waiting): Promise<Run>;
  /** From this moment on, or after an event id; never ends by itself. */
  events(options?: Waiting & { readonly after?: number }): AsyncIterable<Event>;
  status(options?: Waiting): Promise<ServiceStatus>;
  readonly policy: {
    get(options?: Waiting): Promise<PolicyView>;
    /** Asks until nothing is sampled any more. */
    pause(pause?: PauseInput, options?: Waiting): Promise<PolicyView>;
    /** Sampling goes on under the version named, which is then that of all backends. */
    resume(resume?: ResumeInput, options?: Waiting): Promise<PolicyView>;
  };
  readonly batches: Batches;
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

  const get = (id: string, waiting: Waiting = {}) => transport.json({ method: 'GET', path: one(id), ...waiting }, rolloutView);
  const status = (waiting: Waiting = {}) => transport.json({ method: 'GET', path: routes.getStatus.path, ...waiting }, serviceStatus);
  const cancel = async (id: string, waiting: Waiting = {}) =>
    (await transport.json({ method: 'DELETE', path: one(id), ...waiting }, cancelReply)).cancel;
  const reader = { transport, get, cancel };

  async function wait(id: string, waiting: Waiting = {}): Promise<RolloutView> {
    const poll = { method: 'GET', path: one(id), query: { wait: pollSeconds }, waitMs: pollSeconds * 1000, ...waiting } as const;
    for (;;) {
      const view = await transport.json(poll, rolloutView);
      if (isTerminal(view.state)) return view;
    }
  }

  async function* results(ids: readonly string[], { after, ...waiting }: Waiting & { readonly after?: number } = {}) {
    const wanted = ids.map(toRolloutId);
    const from = after ?? (await status(waiting)).last_event_id;
    const followed = followResults(reader, wanted, { after: from, ...waiting });
    if (after === undefined) followed.check(wanted);
    yield* followed;
  }

  async function* events({ after, ...waiting }: Waiting & { readonly after?: number } = {}) {
    yield* readEvents(transport, { after: after ?? (await status(waiting)).last_event_id, ...waiting });
  }

  return {
    submit: (submissions, options) => submitAll(transport, toIdentified(submissions), options),
    get,
    wait,
    list: (options) => readPages(transport, options ?? {}),
    trajectory: (id, waiting) => readTrajectory(transport, toPath(routes.getTrajectory.path, { id }), waiting ?? {}),
    cancel,
    results,
    async run(submissions, waiting = {}) {
      const after = (await status(waiting)).last_event_id;
      return runAll(reader, toIdentified(submissions), { after, ...waiting });
    },
    events,
    status,
    policy: openPolicy(transport),
    batches: openBatches(transport),
    backends: openBackends(transport),
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  };
}

function openPolicy(transport: Transport): Client['policy'] {
  const { getPolicy, pausePolicy, resumePolicy } = routes;
  return {
    get: (waiting = {}) => transport.json({ method: 'GET', path: getPolicy.path, ...waiting }, policyView),
    async pause(body = {}, waiting = {}) {
      const poll = { query: { wait: pollSeconds }, waitMs: pollSeconds * 1000, body, ...waiting };
      for (;;) {
        const view = await transport.json({ method: 'POST', path: pausePolicy.path, ...poll }, policyView);
        if (view.state !== 'pausing') return view;
      }
    },
    resume: (body = {}, waiting = {}) => transport.json({ method: 'POST', path: resumePolicy.path, body, ...waiting }, policyView),
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

async function* readPages(transport: Transport, { signal, ...filter }: ListOptions): AsyncGenerator<RolloutView> {
  let after: string | undefined;
  do {
    const query = { limit: mostListed, ...filter, ...(after === undefined ? {} : { after }) };
    const page = await transport.json(
      { method: 'GET', path: routes.listRollouts.path, query, ...(signal === undefined ? {} : { signal }) },
      rolloutList,
    );
    yield* page.rollouts;
    after = page.next ?? undefined;
  } while (after !== undefined);
}

async function readTrajectory(transport: Transport, path: string, waiting: Waiting): Promise<Trajectory> {
  const bytes = await transport.bytes({ method: 'GET', path, headers: { accept: trajectoryMediaType }, ...waiting });
  try {
    return fromBinary(bytes);
  } catch (cause) {
    const seen = messageOf(cause);
    throw new RolloutError('internal', `GET ${path} answered what this client cannot read: ${seen}`, { cause });
  }
}
