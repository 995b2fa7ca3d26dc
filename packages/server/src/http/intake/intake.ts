// The way in for rollouts: each is checked by its fields, its scenario and its task, and then all are accepted or none.
// A large submission is checked in slices, so that the loop serves others meanwhile.

import { randomUUID } from 'node:crypto';
import { setImmediate as yieldLoop } from 'node:timers/promises';
import { RolloutError, rolloutId, type Submission, type SubmitReply, submission } from '@millrace/protocol';
import { z } from 'zod';
import type { Scenarios } from '../../scenario/load.ts';
import type { Scenario } from '../../scenario/scenario.ts';
import type { NewRollout } from '../../store/rollout-record.ts';
import type { Context } from '../context/context.ts';
import { check, renderPath } from '../request/check.ts';
import { toDigest } from '../request/digest.ts';

const sliceMs = 10;
const drainRetryMs = 5000;

/** `submitRequest` with its rollouts still unread. */
const envelope = z.strictObject({ rollouts: z.array(z.unknown()).min(1).max(10_000) });

export async function readSubmissions(body: unknown, { scenarios, clock }: Context): Promise<readonly NewRollout[]> {
  const { rollouts } = await check(envelope, body);
  const accepted: NewRollout[] = [];
  const placeById = new Map<string, number>();
  let sliceStart = clock.monotonic();
  for (const [index, item] of rollouts.entries()) {
    const at = ['rollouts', index];
    const rollout = await readSubmission(item, at, scenarios);
    const earlier = placeById.get(rollout.id);
    if (earlier !== undefined)
      throw new RolloutError('bad-request', `${renderPath([...at, 'id'])}: ${rollout.id} stands already at rollouts[${earlier}]`);
    placeById.set(rollout.id, index);
    accepted.push(rollout);
    if (clock.monotonic() - sliceStart < sliceMs) continue;
    await yieldLoop();
    sliceStart = clock.monotonic();
  }
  return accepted;
}

async function readSubmission(item: unknown, at: readonly PropertyKey[], scenarios: Scenarios): Promise<NewRollout> {
  const parsed = await check(submission, item, { at });
  const scenario = scenarios.get(parsed.scenario);
  if (scenario === undefined) throw unknownScenario(renderPath([...at, 'scenario']), parsed.scenario, scenarios);
  const { id = toRolloutId(`r-${randomUUID()}`), ...rest } = parsed;
  const rollout = toNewRollout(id, { ...rest, scenario: scenario.name });
  await checkTask(scenario, rest.task, [...at, 'task']);
  return rollout;
}

export function toNewRollout(id: NewRollout['id'], rest: Omit<Submission, 'id'>): NewRollout {
  return { id, submission: { id, ...rest }, digest: toDigest(rest) };
}

export async function checkTask(scenario: Scenario, task: unknown, at: readonly PropertyKey[]): Promise<void> {
  await check(scenario.task, task, { at, code: 'task-invalid' });
}

export function unknownScenario(field: string, name: string, scenarios: Scenarios): RolloutError {
  const known = [...scenarios.names()];
  return new RolloutError('unknown-scenario', `${field}: no scenario is named ${JSON.stringify(name)}; known: ${known.join(', ')}`, {
    details: { known },
  });
}

export async function submitAll(rollouts: readonly NewRollout[], context: Context): Promise<SubmitReply> {
  checkIntake(context);
  const { maxQueued } = context.config;
  const outcome = await context.store.submit(rollouts, { maxQueued });
  switch (outcome.kind) {
    case 'accepted':
      return { rollouts: [...outcome.rollouts] };
    case 'conflict':
      throw new RolloutError('conflict', `known with other content: ${outcome.ids.slice(0, 20).join(', ')}`, {
        details: { ids: outcome.ids },
      });
    case 'full': {
      const { queued } = outcome;
      const seconds = context.endRate.secondsFor(queued + rollouts.length - maxQueued);
      const message = `${queued} rollouts are queued, and ${rollouts.length} more would pass the bound of ${maxQueued}`;
      throw new RolloutError('too-busy', message, { details: { queued, max_queued: maxQueued, retry_after_ms: seconds * 1000 } });
    }
  }
}

/** Throws while the service takes nothing in. */
export function checkIntake({ draining }: Context): void {
  if (!draining.aborted) return;
  throw new RolloutError('not-running', 'the service is shutting down and takes nothing in', { details: { retry_after_ms: drainRetryMs } });
}

/** For ids that were made here. */
export function toRolloutId(text: string): NewRollout['id'] {
  return rolloutId.parse(text);
}
