// One attempt at a rollout, from its claim to the single write that ends it. Only this file decides a rollout's moves and its end,
// and assigns the blame for a failure.

import { Deadline } from '@millrace/base/deadline';
import { type Log, stackOf, withFields } from '@millrace/base/log';
import { raceSignal } from '@millrace/base/race';
import type { Slot } from '@millrace/base/slots';
import { errorTypeOf, type Tracing } from '@millrace/base/trace-span';
import { definedOf, type Failure, type MachineLabels, messageOf, RolloutError, type StageName } from '@millrace/protocol';
import { lowestRewardOf, parseTask } from '@millrace/scenarios';
import {
  type ClaimedRollout,
  type Ending,
  hasLabels,
  labelsOf,
  longestDelayMs,
  StoreFault,
  toScenarioLabel,
  type WorkerRecord,
  type WorkerStore,
} from '@millrace/store';
import { toResultAttributes, toRolloutSpan } from '../../inference/span-names.ts';
import { keepsTurns } from '../continue/continuation.ts';
import type { WorkerLeave } from '../continue/turn-keeper.ts';
import { isTriedApart } from './apart.ts';
import { AttemptRecord } from './attempt-record.ts';
import { canJudgeNothing } from './control.ts';
import { evaluateAttempt } from './evaluate.ts';
import type { ToEvaluate } from './judge.ts';
import type { PipelineConfig } from './pipeline-config.ts';
import { isRejudged, rejudgeAttempt } from './rejudge.ts';
import { runSettled } from './run-settled.ts';
import { saveUntilDone } from './save.ts';
import type { Stage } from './stage.ts';
import type { StageDeps } from './stage-deps.ts';
import { initAttempt } from './stages.ts';

export interface AttemptDeps extends StageDeps {
  readonly store: WorkerStore;
  readonly stages: Readonly<Record<StageName, Stage>>;
  readonly config: PipelineConfig;
  readonly log: Log;
  /** Absent if no rollout is traced. */
  readonly tracing?: Tracing;
}

/** Aborting with this returns the rollout to the queue; no retry is counted. */
export class HandBack extends Error {}

/** Aborting with this means that the rollout belongs to another worker: nothing may be written. */
export class Fenced extends Error {}

/** How long a scenario may take to close a rollout. */
const closeMs = 30_000;

interface AttemptOptions {
  readonly signal: AbortSignal;
  /** Aborts when the worker drops the attempt: an end that the store refuses is then left to the lease. */
  readonly dropped: AbortSignal;
  readonly leaving: WorkerLeave;
  /** The slot in the ready buffer, released when run starts. */
  readonly readySlot: Slot;
  /** Called when the attempt needs its run slot no longer; what is left is to evaluate and save it. */
  onRunEnd(): void;
}

/** Never rejects: every outcome is the rollout's end, a retry, a return to the queue, or left to another worker. */
export async function runClaimed(given: AttemptDeps, claimed: ClaimedRollout, options: AttemptOptions): Promise<void> {
  const record = new AttemptRecord(claimed, given.clock, options.leaving);
  const deps = beginTrace(given, record);
  try {
    const end = await findEnd(deps, record, options);
    options.onRunEnd();
    await saveEnd(deps, record, end, options);
    endTrace(record, end);
    if (end.kind === 'finish' && !keepsTurns(claimed.submission)) await deps.continuing?.shelf.remove(claimed.id);
  } catch (error) {
    // The worker no longer names the rollout in its renewals, so the store takes it back.
    record.span?.end(errorTypeOf(error));
    deps.log.error('rollout-end-save-failed', { rolloutId: claimed.id, attempt: claimed.attempt, error: messageOf(error) });
  } finally {
    deps.continuing?.turns.forget(claimed);
    options.readySlot[Symbol.dispose]();
  }
}

/** Every line that the attempt logs has the id of its trace. */
function beginTrace(deps: AttemptDeps, record: AttemptRecord): AttemptDeps {
  const span = deps.tracing?.beginTrace(toRolloutSpan(record.claimed));
  if (span === undefined) return deps;
  record.span = span;
  return { ...deps, log: withFields(deps.log, { traceId: span.traceId }) };
}

function endTrace(record: AttemptRecord, end: AttemptEnd): void {
  const { span } = record;
  if (span === undefined) return;
  span.note(toResultAttributes(record.result()));
  const failure = end.kind === 'finish' && end.ending.state !== 'cancelled' ? end.ending.failure : undefined;
  span.end(failure?.code ?? (end.kind === 'finish' ? undefined : end.kind));
}

/** Bounded in time: a scenario that does not return keeps no slot and no rollout. */
async function closeScenario({ log, clock }: AttemptDeps, { claimed, closers }: AttemptRecord): Promise<void> {
  using deadline = new Deadline('closing the rollout', closeMs, clock);
  for (const close of closers.splice(0)) {
    try {
      await raceSignal(close(), deadline.signal);
    } catch (error) {
      log.warn('scenario-close-failed', { rolloutId: claimed.id, scenario: claimed.submission.scenario, error: stackOf(error) });
    }
  }
}

async function runStages(deps: AttemptDeps, record: AttemptRecord, options: AttemptOptions): Promise<void> {
  const { stages } = deps;
  const { signal, readySlot } = options;
  const move = async (to: 'ready' | 'run' | 'evaluate') => {
    const write = () => deps.store.move(record.claimed, to);
    const isHeld = await saveUntilDone(write, { ...deps, claim: record.claimed, what: `move to ${to}`, signal });
    if (!isHeld) throw new Fenced();
  };
  await using sandbox = record.sandbox;

  record.stage = 'init';
  const prepared = await stages.init.run((waitedMs) => record.inStage('init', waitedMs, () => initAttempt(deps, record, signal)), {
    signal,
  });
  await move('ready');

  record.stage = 'run';
  const inRun = async (waitedMs: number) => {
    readySlot[Symbol.dispose]();
    record.timings.ready_ms += waitedMs;
    await move('run');
    return await record.inStage('run', waitedMs, () => runSettled(deps, record, { ...prepared, signal }));
  };
  const artifact = await stages.run.run(inRun, { signal });
  options.onRunEnd();
  await sandbox.close();

  record.stage = 'evaluate';
  await move('evaluate');
  const inEvaluate = async (waitedMs: number) => {
    record.timings.evaluate_wait_ms += waitedMs;
    const { isJudgedApart, id } = record.claimed;
    if (isJudgedApart) await prepareLoss(deps, record, { ...prepared, artifact, signal });
    await record.inStage('evaluate', waitedMs, () => evaluateAttempt(deps, record, { ...prepared, artifact, signal }));
    if (!isJudgedApart && isRejudged(id, deps.config.rejudgeShare)) await rejudgeAttempt(deps, record, { ...prepared, artifact, signal });
  };
  await stages.evaluate.run(inEvaluate, { signal });
}

/**
 * For a rollout that took two workers in evaluate: stores that it has the lowest reward if it takes this one too. Only after this process
 * judged an agent that did nothing: if no worker survives the verifier, that is not the agent's fault.
 */
async function prepareLoss(deps: AttemptDeps, record: AttemptRecord, toJudge: ToEvaluate): Promise<void> {
  const { claimed } = record;
  const { signal } = toJudge;
  const isJudge = await canJudgeNothing(deps, record, toJudge).catch((error) => {
    signal.throwIfAborted();
    deps.log.warn('loss-control-failed', { rolloutId: claimed.id, error: messageOf(error) });
    return false;
  });
  const lowest = isJudge ? await readLowestReward(deps, record) : undefined;
  if (lowest === undefined) return;
  const ending = { result: { ...record.result(), reward: lowest }, trajectory: record.trajectory() };
  const write = () => deps.store.endIfLost(claimed, ending);
  if (!(await saveUntilDone(write, { ...deps, claim: claimed, what: 'end if lost', signal }))) throw new Fenced();
}

/** What the attempt's last write says. */
type AttemptEnd =
  | { readonly kind: 'finish'; readonly ending: Ending }
  | { readonly kind: 'retry'; readonly failure: Failure; readonly delayMs: number }
  | { readonly kind: 'release'; readonly requires?: MachineLabels }
  | { readonly kind: 'fenced' };

async function findEnd(deps: AttemptDeps, record: AttemptRecord, options: AttemptOptions): Promise<AttemptEnd> {
  try {
    try {
      await runStages(deps, record, options);
    } finally {
      void closeScenario(deps, record); // it never rejects, and the end of the rollout does not wait for it
    }
    return { kind: 'finish', ending: { state: 'done', result: record.result(), trajectory: record.trajectory() } };
  } catch (error) {
    return await toEnd(deps, record, options.signal.aborted ? options.signal.reason : error);
  }
}

async function toEnd(deps: AttemptDeps, record: AttemptRecord, reason: unknown): Promise<AttemptEnd> {
  const { log, config } = deps;
  const { claimed } = record;
  if (reason instanceof Fenced) return { kind: 'fenced' };
  if (reason instanceof HandBack) return { kind: 'release' };
  const failure = record.failureOf(reason);
  const elsewhere = failure.code === 'unknown-scenario' ? await findElsewhere(deps, claimed) : undefined;
  if (elsewhere) return { kind: 'release', requires: elsewhere };
  if (failure.code === 'cancelled') return { kind: 'finish', ending: { state: 'cancelled', ...record.partial() } };
  const exception = record.exceptionOf(reason);
  const stack = exception && stackOf(exception);
  log.warn('rollout-failure', { rolloutId: claimed.id, ...failure, ...definedOf({ stack }) });
  const lowest = failure.blame === 'policy' ? await readLowestReward(deps, record) : undefined;
  // Otherwise a policy could choose to fail instead of getting a bad reward.
  if (lowest !== undefined)
    return {
      kind: 'finish',
      ending: { state: 'done', failure, result: { ...record.result(), reward: lowest }, trajectory: record.trajectory() },
    };
  if (failure.retryable && (claimed.retries < claimed.submission.limits.max_retries || isTriedApart(claimed, failure)))
    return { kind: 'retry', failure, delayMs: Math.min(config.retryDelayMs * 2 ** claimed.retries, longestDelayMs) };
  return { kind: 'finish', ending: { state: 'failed', failure, ...record.partial() } };
}

/** What a machine has that can run the rollout, if there is one: another version or configuration may know its scenario. */
async function findElsewhere({ store, log }: AttemptDeps, { id, submission }: ClaimedRollout): Promise<MachineLabels | undefined> {
  const requires = toScenarioLabel(submission.scenario);
  const isAble = ({ hasEnded, report }: WorkerRecord) => !hasEnded && report?.machine && hasLabels(labelsOf(report.machine), requires);
  if (!(await store.workers()).some(isAble)) return undefined;
  log.info('rollout-hand-over', { rolloutId: id, scenario: submission.scenario });
  return requires;
}

/** Undefined if the scenario's own function fails: then the rollout fails without a reward. */
async function readLowestReward({ scenarios, log }: AttemptDeps, { claimed }: AttemptRecord): Promise<number | undefined> {
  const { scenario: name, task } = claimed.submission;
  const scenario = scenarios.get(name);
  try {
    return scenario && (await lowestRewardOf(scenario, await parseTask(scenario, task)));
  } catch (error) {
    log.error('lowest-reward-failed', { rolloutId: claimed.id, error: stackOf(error) });
    return undefined;
  }
}

async function saveEnd(deps: AttemptDeps, record: AttemptRecord, end: AttemptEnd, { dropped }: AttemptOptions): Promise<void> {
  const { store, log } = deps;
  const { claimed } = record;
  const ids = { rolloutId: claimed.id, attempt: claimed.attempt };
  const save = (next: AttemptEnd) =>
    saveUntilDone(() => writeEnd(store, claimed, next), { ...deps, claim: claimed, what: next.kind, signal: dropped });
  try {
    if (end.kind === 'release' || end.kind === 'retry') await saveTurns(deps, record);
    if (!(await save(end))) log.warn('rollout-fenced', ids);
  } catch (error) {
    if (error instanceof StoreFault || end.kind !== 'finish') throw error;
    // The store can never save this end: it is replaced by one that has only the failure.
    log.error('rollout-end-unsavable', { ...ids, error: stackOf(error) });
    const failure = record.failureOf(new RolloutError('internal', `the end could not be stored: ${messageOf(error)}`));
    if (!(await save({ kind: 'finish', ending: { state: 'failed', failure } }))) log.warn('rollout-fenced', ids);
  }
}

/** Before the rollout is another worker's: after that, nothing can be added. */
async function saveTurns({ continuing, log }: AttemptDeps, { claimed }: AttemptRecord): Promise<void> {
  try {
    await continuing?.turns.flush();
  } catch (error) {
    log.error('rollout-save-failed', { rolloutId: claimed.id, attempt: claimed.attempt, what: 'its turns', error: messageOf(error) });
  }
}

/** False when fenced: nothing was written. */
async function writeEnd(store: WorkerStore, claimed: ClaimedRollout, end: AttemptEnd): Promise<boolean> {
  const keeps = keepsTurns(claimed.submission) ? ({ keepsTurns: true } as const) : {};
  if (end.kind === 'finish') return await store.finish(claimed, { ...end.ending, ...keeps });
  if (end.kind === 'retry') return await store.retry(claimed, end.failure, end);
  return end.kind === 'release' && (await store.release(claimed, definedOf({ requires: end.requires })));
}
