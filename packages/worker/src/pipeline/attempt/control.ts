// The control of a verifier that broke: the same task with an agent that did nothing, in fresh sandboxes, judged in the same way. What it
// showed is remembered for a while, so that a broken verifier is not tried again for each of its rollouts.

import { createHash } from 'node:crypto';
import { Deadline } from '@millrace/base/deadline';
import { raceSignal } from '@millrace/base/race';
import { definedOf, RolloutError } from '@millrace/protocol';
import type { Sandbox } from '@millrace/sandbox';
import { findDisturbance } from '@millrace/sandbox';
import {
  type AgentEnd,
  collectScenario,
  type InitContext,
  initScenario,
  type Opened,
  prepareScenario,
  sandboxOf,
} from '@millrace/scenarios';
import { isApart } from './apart.ts';
import type { AttemptRecord, Prepared } from './attempt-record.ts';
import { AttemptSandbox } from './attempt-sandbox.ts';
import { judge, openOwnTime, type ToEvaluate } from './judge.ts';
import type { StageDeps } from './stage-deps.ts';

/** A verifier that judges these is not broken. There are two, since one may be right, and none is empty: such answers are often not looked at. */
export const neutralAnswers = ['0', '7'];

/** Whether the verifier has a verdict on an agent that did nothing. Throws `evaluate-disturbed` if the machine did not let it say. */
export async function canJudgeNothing(deps: StageDeps, record: AttemptRecord, prepared: ToEvaluate): Promise<boolean> {
  const { scenario, task } = record.claimed.submission;
  const key = createHash('sha256')
    .update(JSON.stringify([scenario, task]))
    .digest('base64');
  const known = deps.controls.get(key);
  if (known !== undefined) return known;
  const works = await tryAnswers(deps, record, prepared);
  deps.controls.set(key, works);
  return works;
}

async function tryAnswers(deps: StageDeps, record: AttemptRecord, prepared: ToEvaluate): Promise<boolean> {
  for (const answer of neutralAnswers) {
    try {
      await judgeNothing(deps, record, { ...prepared, end: { stopReason: 'completed', answer } });
    } catch (error) {
      prepared.signal.throwIfAborted();
      const seen = record.errorOf(error);
      if (findDisturbance(seen) !== undefined) throw new RolloutError('evaluate-disturbed', seen.message, { cause: error });
      if (seen.code === 'scenario-died') throw seen;
      return false;
    }
  }
  return true;
}

async function judgeNothing(deps: StageDeps, record: AttemptRecord, prepared: ToEvaluate & { readonly end: AgentEnd }): Promise<void> {
  const { task, end } = prepared;
  await withFreshRollout(deps, record, prepared, async ({ scenario, opening, sandbox, sandboxes, context, signal }) => {
    const toCollect = { ...context, end, ...definedOf({ state: opening.state }) };
    const artifact = sandbox ? await raceSignal(collectScenario(scenario, { ...toCollect, sandbox }), signal) : Buffer.alloc(0);
    using time = await openOwnTime(deps, record, { ...prepared, isLastTry: true });
    await judge(deps, { scenario, task, opening, record, time, sandboxes, end, artifact, sampledTokens: 0 });
  });
}

export type Running = Pick<Prepared, 'scenario' | 'task'> & { readonly signal: AbortSignal };

export interface FreshRollout {
  readonly scenario: Prepared['scenario'];
  readonly opening: Opened;
  readonly sandbox: Sandbox | undefined;
  readonly sandboxes: AttemptSandbox;
  readonly context: Omit<InitContext<unknown>, 'sandbox'>;
  readonly signal: AbortSignal;
}

/** The same task as far as `init` leads, in its own sandbox; in its own process, too, if what ended another one is in question. */
export async function withFreshRollout(
  deps: StageDeps,
  record: AttemptRecord,
  { scenario: known, task, signal: given }: Running,
  work: (fresh: FreshRollout) => Promise<void>,
): Promise<void> {
  const { limits } = record.claimed.submission;
  using own = isApart(record) ? known.apart?.({ isLast: false }) : undefined;
  const scenario = own ?? known;
  await using sandboxes = new AttemptSandbox();
  using deadline = new Deadline('the control of the verifier', limits.init_timeout_s * 1000, deps.clock);
  const signal = AbortSignal.any([given, deadline.signal]);
  const context = { task, limits, signal, ...definedOf({ prompts: deps.prompts }) };
  const spec = await sandboxOf(scenario, task);
  const sandbox = spec && (await sandboxes.open(() => deps.driver.open(spec, { signal })));
  if (sandbox) await raceSignal(prepareScenario(scenario, { ...context, sandbox }), signal);
  const inSandbox = { ...context, ...definedOf({ sandbox }) } as Parameters<typeof initScenario>[1];
  const opening = await raceSignal(initScenario(scenario, inSandbox, { outside: deps.outside, sandbox }), signal);
  try {
    await work({ scenario, opening, sandbox, sandboxes, context, signal });
  } finally {
    await opening.close();
  }
}
