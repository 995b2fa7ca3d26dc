// The calls that a worker makes to a server instead of a store: the shape of each request, and what a server does with it. Each may arrive
// twice, because a worker repeats a call whose reply it did not get; a result is written once all the same.

import type { BackendProbe } from '@millrace/engines';
import {
  backendId,
  definedOf,
  eventKinds,
  failure,
  groupId,
  RolloutError,
  rolloutId,
  rolloutResult,
  workerId,
  workerReport,
} from '@millrace/protocol';
import { z } from 'zod';
import type { Ending } from '../claim.ts';
import { workerEvents } from '../event-tail.ts';
import type { NewEvent, Store } from '../store.ts';

/** What both sides must agree on. Raised when a call changes so that the other side would do something wrong with it. */
export const workerWire = 1;
/** A server also serves the workers of the version before. */
const oldestWire = 1;

/** Why a server cannot serve a worker of this wire, and what to do; absent if it can. */
export function toWireFault(wire: number): string | undefined {
  if (wire >= oldestWire && wire <= workerWire) return undefined;
  const known = oldestWire === workerWire ? `${workerWire}` : `${oldestWire} to ${workerWire}`;
  const advice = wire > workerWire ? 'replace the servers by the newer version first' : 'replace the worker by the version of its service';
  return `the worker speaks wire ${wire}, and this server ${known}: ${advice}`;
}

const held = z.object({ id: rolloutId, attempt: z.int() });
const claim = held.extend({ worker: workerId });
const rules = z.object({ maxLosses: z.int(), retryDelayMs: z.number().optional() });
/** Those of a machine, and its scenarios. */
const labels = z.record(z.string(), z.string());
const isRepeated = z.boolean().optional();
const result = rolloutResult;
/** The trajectory is the attachment of the call, if it has this checksum. */
const sha256 = z
  .string()
  .regex(/^[0-9a-f]{64}$/)
  .optional();
const common = { sha256, keepsTurns: z.literal(true).optional() };
const ending = z.discriminatedUnion('state', [
  z.object({ ...common, state: z.literal('done'), result, failure: failure.optional() }),
  z.object({ ...common, state: z.literal('failed'), failure, result: result.optional() }),
  z.object({ ...common, state: z.literal('cancelled'), result: result.optional() }),
]);
const newEvent = z.object({
  kind: z.enum(eventKinds),
  rolloutId: rolloutId.optional(),
  group: groupId.optional(),
  workerId: workerId.optional(),
  backendId: backendId.optional(),
  data: z.record(z.string(), z.unknown()),
});
const routing = z.object({ affinityBound: z.number(), spillFactor: z.number(), spillRollouts: z.number() });
const placing = z.object({
  exclude: z.array(backendId).optional(),
  isSticky: z.boolean().optional(),
  tokens: z.number().optional(),
  routing: routing.optional(),
  isRepeated,
});
/** It goes from one worker to the store and to other workers: a server does not look into it. */
const probe = z.custom<BackendProbe>((value) => typeof value === 'object' && value !== null);
const machine = z.string().optional();
const bytes = z.base64().transform((text): Uint8Array => Buffer.from(text, 'base64'));
const turns = z.object({
  id: rolloutId,
  attempt: z.int(),
  after: z.int().optional(),
  turns: z.array(z.object({ turn: z.int(), body: bytes })),
});

/** The store of a server, its worker events, and what came with the call after its JSON. */
interface CallContext {
  readonly store: Store;
  readonly attachment: Uint8Array | undefined;
}

interface WorkerCall<Schema extends z.ZodType, Reply> {
  readonly request: Schema;
  run(context: CallContext, request: z.output<Schema>): Promise<Reply>;
}

function call<Schema extends z.ZodType, Reply>(request: Schema, run: WorkerCall<Schema, Reply>['run']): WorkerCall<Schema, Reply> {
  return { request, run };
}

const workerCalls = {
  registerWorker: call(
    z.object({ id: workerId, host: z.string(), pid: z.int(), leaseMs: z.number() }),
    ({ store }, { leaseMs, ...worker }) => store.registerWorker(worker, { leaseMs }),
  ),
  renew: call(
    z.object({ worker: workerId, leaseMs: z.number(), report: workerReport, held: rules.extend({ claims: z.array(held) }).optional() }),
    ({ store }, { worker, held: named, ...options }) =>
      store.renew(worker, { ...options, ...definedOf({ held: named && definedOf(named) }) }),
  ),
  claim: call(
    z.object({ worker: workerId, limit: z.int(), labels, held: z.array(held).optional() }),
    async ({ store }, { worker, limit, labels: own, held: named }) => {
      const lost = named ? await store.unanswered(worker, named) : [];
      return lost.length > 0 ? lost : await store.claim(worker, limit, own);
    },
  ),
  move: call(
    z.object({ claim, to: z.enum(['ready', 'run', 'evaluate']), isRepeated }),
    ({ store }, { claim: own, to, isRepeated: again }) => store.move(own, to, definedOf({ isRepeated: again })),
  ),
  endIfLost: call(z.object({ claim, result, sha256, isRepeated }), async ({ store, attachment: bytes }, request) => {
    const { claim: own, result: lowest, sha256: sum, isRepeated: again } = request;
    if (bytes === undefined || sum === undefined) throw new RolloutError('bad-request', 'an end if lost has a trajectory');
    return await store.endIfLost(own, { result: lowest, trajectory: { bytes, sha256: sum } }, definedOf({ isRepeated: again }));
  }),
  finish: call(z.object({ claim, ending, isRepeated }), ({ store, attachment }, { claim: own, ending: end, isRepeated: again }) =>
    store.finish(own, toEnding(end, attachment), definedOf({ isRepeated: again })),
  ),
  retry: call(z.object({ claim, failure, delayMs: z.number() }), ({ store }, { claim: own, failure: why, delayMs }) =>
    store.retry(own, why, { delayMs }),
  ),
  release: call(z.object({ claim, requires: labels.optional() }), ({ store }, { claim: own, requires }) =>
    store.release(own, definedOf({ requires })),
  ),
  dropWorker: call(z.object({ worker: workerId, rules }), ({ store }, { worker, rules: own }) => store.dropWorker(worker, definedOf(own))),
  workers: call(z.undefined(), ({ store }) => store.workers()),
  get: call(z.object({ id: rolloutId }), ({ store }, { id }) => store.get(id)),
  backends: call(z.undefined(), ({ store }) => store.backends()),
  backendLoads: call(z.undefined(), ({ store }) => store.backendLoads()),
  oldestOn: call(z.object({ worker: workerId, caches: z.array(z.object({ id: backendId, tokens: z.number() })) }), ({ store }, request) =>
    store.oldestOn(request.worker, request.caches),
  ),
  place: call(z.object({ claim, options: placing }), ({ store }, { claim: own, options }) => store.place(own, definedOf(options))),
  breakBackend: call(
    z.object({ id: backendId, error: z.string(), isProbe: z.boolean().optional(), machine }),
    ({ store }, { id, ...report }) => store.breakBackend(id, definedOf(report)),
  ),
  recoverBackend: call(z.object({ id: backendId, machine }), ({ store }, { id, ...options }) =>
    store.recoverBackend(id, definedOf(options)),
  ),
  noteProbe: call(z.object({ id: backendId, probe }), ({ store }, { id, probe: seen }) => store.noteProbe(id, seen)),
  takeProbe: call(z.object({ id: backendId, machine }), ({ store }, { id, ...options }) => store.takeProbe(id, definedOf(options))),
  noteTraffic: call(
    z.object({
      contexts: z.array(z.object({ claim, tokens: z.number() })),
      errors: z.array(z.object({ backend: backendId, message: z.string() })),
    }),
    ({ store }, notes) => store.noteTraffic(notes),
  ),
  policy: call(z.undefined(), ({ store }) => store.policy()),
  reportGate: call(z.object({ worker: workerId, pause: z.int(), generating: z.int() }), ({ store }, { worker, ...report }) =>
    store.reportGate(worker, report),
  ),
  appendEvents: call(z.object({ events: z.array(newEvent) }), ({ store }, { events }) =>
    store.appendEvents(events.map((one): NewEvent => definedOf(one))),
  ),
  events: call(
    z.object({ after: z.int(), limit: z.int(), kinds: z.array(z.enum(eventKinds)).optional() }),
    ({ store }, { after, ...options }) => store.events(after, definedOf(options)),
  ),
  lastEventId: call(z.undefined(), ({ store }) => store.lastEventId()),
  appendTurns: call(z.object({ worker: workerId, appends: z.array(turns) }), ({ store }, { worker, appends }) =>
    store.appendTurns(
      worker,
      appends.map((one) => definedOf(one)),
    ),
  ),
  loggedTurns: call(claim, async ({ store }, own) =>
    (await store.loggedTurns(own)).map(({ body, ...turn }) => ({ ...turn, body: Buffer.from(body).toString('base64') })),
  ),
};

type WorkerCalls = typeof workerCalls;
export type WorkerCallName = keyof WorkerCalls;
export type WorkerCallRequest<Name extends WorkerCallName> = z.input<WorkerCalls[Name]['request']>;
export type WorkerCallReply<Name extends WorkerCallName> = Awaited<ReturnType<WorkerCalls[Name]['run']>>;

/** The request of a worker that waits for what workers wait for (`workerEvents`): a server answers when something happened, or when the time is over. */
export const eventsWait = z.object({ after: z.int(), waitMs: z.number().max(60_000) });
export const longestWaitMs = 20_000;

export interface WorkerEventsPage {
  readonly events: Awaited<ReturnType<Store['events']>>['events'];
  readonly last: number;
}

export const awaitedKinds = workerEvents;

export function isWorkerCall(name: string): name is WorkerCallName {
  return Object.hasOwn(workerCalls, name);
}

/** Runs one call as a server. Throws a ZodError for a request that is not one. */
export async function runWorkerCall(name: WorkerCallName, request: unknown, context: CallContext): Promise<unknown> {
  const one: WorkerCall<z.ZodType, unknown> = workerCalls[name];
  return await one.run(context, one.request.parse(request));
}

function toEnding({ sha256: sum, ...end }: z.output<typeof ending>, attachment: Uint8Array | undefined): Ending {
  const trajectory = sum !== undefined && attachment !== undefined ? { bytes: attachment, sha256: sum } : undefined;
  if (end.state === 'done') {
    if (!trajectory) throw new RolloutError('bad-request', 'a finished rollout has a trajectory');
    return { ...definedOf(end), trajectory };
  }
  return { ...definedOf(end), ...definedOf({ trajectory }) };
}
