// Intake of rollouts: each is checked for its fields, scenario and task, then all are accepted or none. A large submission is
// checked in slices, so that the event loop can serve other requests.

import { randomUUID } from 'node:crypto';
import { setImmediate as yieldLoop } from 'node:timers/promises';
import type { Clock } from '@millrace/base/clock';
import { runNow } from '@millrace/base/pace';
import {
  didYouMean,
  isTerminal,
  RolloutError,
  type RolloutId,
  rolloutId,
  type SchemaResult,
  type Submission,
  type SubmitReply,
  submission,
  toAgentOptions,
} from '@millrace/protocol';
import { callScenario, type Scenario, type Scenarios, safeParseTask } from '@millrace/scenarios';
import type { NewRollout, RolloutRecord } from '@millrace/store';
import { z } from 'zod';
import type { AppContext } from '../context/context.ts';
import { check, FaultCollector, toFault, toFaultError } from '../request/check.ts';
import { toDigest } from '../request/digest.ts';
import { refuseImages } from './refuse-images.ts';
import { refuseSandbox } from './refuse-sandbox.ts';

const sliceMs = 10;
const drainRetryMs = 5000;

/** `submitRequest` with unparsed rollouts. */
const envelope = z.strictObject({ rollouts: z.array(z.unknown()).min(1).max(10_000) });

export async function readSubmissions(body: unknown, context: AppContext): Promise<readonly NewRollout[]> {
  const { rollouts } = await check(envelope, body);
  const accepted: NewRollout[] = [];
  const indexById = new Map<string, number>();
  const faults = new FaultCollector();
  const pause = openPause(context.clock);
  for (const [index, item] of rollouts.entries()) {
    const at = ['rollouts', index] as const;
    const rollout = await faults.collect(at, async () => {
      const read = await readSubmission(item, at, context);
      checkUnique(read.id, at, indexById);
      return read;
    });
    if (faults.isFull) break;
    if (rollout) accepted.push(rollout);
    await pause();
  }
  faults.throwIfAny();
  return accepted;
}

/** Called between items of a long list: lets other requests run when the last ones took a while. */
export function openPause(clock: Clock): () => Promise<void> {
  let sliceStart = clock.monotonic();
  return async () => {
    if (clock.monotonic() - sliceStart < sliceMs) return;
    await yieldLoop();
    sliceStart = clock.monotonic();
  };
}

function checkUnique(id: string, at: readonly [string, number], indexById: Map<string, number>): void {
  const earlier = indexById.get(id);
  if (earlier !== undefined)
    throw toFaultError([toFault([...at, 'id'], `${id} is already the id of rollouts[${earlier}]`)], { code: 'bad-request' });
  indexById.set(id, at[1]);
}

async function readSubmission(item: unknown, at: readonly PropertyKey[], context: AppContext): Promise<NewRollout> {
  const { scenarios } = context;
  const parsed = await check(submission, item, { at });
  const scenario = scenarios.get(parsed.scenario);
  if (scenario === undefined) throw unknownScenario([...at, 'scenario'], parsed.scenario, scenarios);
  const { id = toRolloutId(`r-${randomUUID()}`), ...rest } = parsed;
  const rollout = toNewRollout(id, { ...rest, scenario: scenario.name });
  checkAgent(rest.agent, [...at, 'agent'], context);
  await checkTask({ scenario, task: rest.task, at: [...at, 'task'] }, context);
  return rollout;
}

export function toNewRollout(id: NewRollout['id'], rest: Omit<Submission, 'id'>): NewRollout {
  return { id, submission: { id, ...rest }, digest: runNow(toDigest(rest)) };
}

interface SentTask {
  readonly scenario: Scenario;
  readonly task: unknown;
  /** Its path inside the request. */
  readonly at: readonly PropertyKey[];
}

/** Throws `task-invalid` for a task that its scenario cannot read, or no machine can run. */
export async function checkTask(sent: SentTask, context: AppContext): Promise<void> {
  await refuseSandbox({ ...sent, sent: sent.task, task: await readTask(sent) }, context);
}

/** As the scenario's schema parses it. Throws `task-invalid` if it cannot. */
export async function readTask({ scenario, task, at }: SentTask): Promise<unknown> {
  refuseImages(task, at);
  const schema = { safeParseAsync: (data: unknown) => parseWith(scenario, data, at) };
  return await check(schema, task, { at, code: 'task-invalid', fields: scenario.task });
}

/** A schema of the user's own that throws is named with file and line. */
async function parseWith(scenario: Scenario, data: unknown, at: readonly PropertyKey[]): Promise<SchemaResult<unknown>> {
  const code = 'task-invalid';
  try {
    return await callScenario({ what: `scenario ${scenario.name}, task`, code }, () => safeParseTask(scenario, data));
  } catch (error) {
    if (!(error instanceof RolloutError) || error.code !== code) throw error;
    throw error.cause instanceof RangeError ? error.cause : toFaultError([toFault(at, error.message)], { code });
  }
}

/** Throws `bad-request` for a harness that is not known. */
export function checkAgent(given: Submission['agent'], at: readonly PropertyKey[], { sandboxes }: Pick<AppContext, 'sandboxes'>): void {
  const { harnesses: known } = sandboxes;
  if (given === undefined) return;
  const { name } = toAgentOptions(given);
  if (known.includes(name)) return;
  const fault = toFault(at, `no harness is named ${JSON.stringify(name)}${didYouMean(name, known)}; known: ${known.join(', ')}`);
  throw toFaultError([fault], { code: 'bad-request', details: { known } });
}

export function unknownScenario(at: readonly PropertyKey[], name: string, scenarios: Scenarios): RolloutError {
  const known = [...scenarios.names()];
  const fault = toFault(at, `no scenario is named ${JSON.stringify(name)}${didYouMean(name, known)}; known: ${known.join(', ')}`);
  return toFaultError([fault], { code: 'unknown-scenario', details: { known } });
}

/** The rollout that tries it again: one that does so already, or has a reward, or else a new one under the next number. */
export async function retryRollout(id: RolloutId, context: AppContext, caller: string): Promise<RolloutRecord> {
  const { store } = context;
  const first = await store.get(id);
  if (first === undefined) throw unknownRollout(id);
  if (!isTerminal(first.state)) throw new RolloutError('conflict', `rollout ${id} has not ended: it is in ${first.state}`);
  if (hasReward(first))
    throw new RolloutError('conflict', `rollout ${id} ended with a reward; submit its task again to sample it once more`);
  for (let number = 1; ; number += 1) {
    const next = toRolloutId(`${id}.${number}`);
    const known = await store.get(next);
    if (known !== undefined && (!isTerminal(known.state) || hasReward(known))) return known;
    if (known !== undefined) continue;
    await submitAll([{ id: next, submission: { ...first.submission, id: next }, digest: first.digest }], context, caller);
    return (await store.get(next)) ?? first;
  }
}

function hasReward({ result }: RolloutRecord): boolean {
  return typeof result?.reward === 'number';
}

export function unknownRollout(id: RolloutId): RolloutError {
  return new RolloutError('not-found', `there is no rollout ${id}`, { details: { reason: 'unknown' } });
}

/** The rollouts share the workers with other work of the same caller as one class. */
export async function submitAll(rollouts: readonly NewRollout[], context: AppContext, caller = ''): Promise<SubmitReply> {
  checkIntake(context);
  const { maxQueued } = context.config;
  const outcome = await context.store.submit(rollouts, { maxQueued, workClass: { kind: 'plain', name: caller, weight: 1 } });
  switch (outcome.kind) {
    case 'accepted':
      return { rollouts: [...outcome.rollouts] };
    case 'conflict':
      throw new RolloutError('conflict', `these ids exist with different content: ${outcome.ids.slice(0, 20).join(', ')}`, {
        details: { ids: outcome.ids },
      });
    case 'full': {
      const { queued } = outcome;
      const seconds = context.recentEnds.secondsFor(queued + rollouts.length - maxQueued);
      const message = `${queued} rollouts are queued, and ${rollouts.length} more would exceed the limit of ${maxQueued}`;
      throw new RolloutError('too-busy', message, { details: { queued, max_queued: maxQueued, retry_after_ms: seconds * 1000 } });
    }
  }
}

/** Throws while the service is shutting down. */
export function checkIntake({ draining }: AppContext): void {
  if (!draining.aborted) return;
  throw new RolloutError('not-running', 'the service is shutting down and accepts no new work', {
    details: { retry_after_ms: drainRetryMs },
  });
}

/** For ids generated by the service. */
export function toRolloutId(text: string): NewRollout['id'] {
  return rolloutId.parse(text);
}
