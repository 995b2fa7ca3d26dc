// One attempt at a rollout, from its claim to the single write that ends it. Only this file decides a rollout's moves and its end,
// and assigns the blame for a failure.

import { messageOf, type StageName } from '@millrace/protocol';
import type { Log } from '../base/log.ts';
import type { Slot } from '../base/slots.ts';
import type { ClaimedRollout, Ending, Store } from '../store/store.ts';
import { AttemptRecord } from './attempt-record.ts';
import { renderStack } from './error-stack.ts';
import type { PipelineConfig } from './pipeline-config.ts';
import type { Stage } from './stage.ts';
import { collectAttempt, evaluateAttempt, initAttempt, runAttempt, type StageDeps } from './stages.ts';

export interface AttemptDeps extends StageDeps {
  readonly store: Store;
  readonly stages: Readonly<Record<StageName, Stage>>;
  readonly config: PipelineConfig;
  readonly log: Log;
}

/** Aborting with this returns the rollout to the queue; no retry is counted. */
export class HandBack extends Error {}

/** Aborting with this means that the rollout belongs to another worker: nothing may be written. */
export class Fenced extends Error {}

export interface AttemptOptions {
  readonly signal: AbortSignal;
  /** The slot in the ready buffer, released when run starts. */
  readonly readySlot: Slot;
}

/** Never rejects: every outcome is the rollout's end, a retry, a return to the queue, or left to another worker. */
export async function runClaimed(deps: AttemptDeps, claimed: ClaimedRollout, options: AttemptOptions): Promise<void> {
  const record = new AttemptRecord(claimed, deps.clock);
  try {
    await runStages(deps, record, options);
    await finish(deps, record, { state: 'done', result: record.result(), trajectory: record.trajectory() });
  } catch (error) {
    await endBadly(deps, record, options.signal.aborted ? options.signal.reason : error);
  } finally {
    options.readySlot[Symbol.dispose]();
  }
}

async function runStages(deps: AttemptDeps, record: AttemptRecord, { signal, readySlot }: AttemptOptions): Promise<void> {
  const { stages } = deps;
  const move = async (to: 'ready' | 'run' | 'evaluate') => {
    if (!(await deps.store.move(record.claimed, to))) throw new Fenced();
  };
  await using machine = record.machine;

  record.stage = 'init';
  const prepared = await stages.init.run(() => initAttempt(deps, record, signal), { signal });
  await move('ready');

  record.stage = 'run';
  const inRun = async (waitedMs: number) => {
    readySlot[Symbol.dispose]();
    record.timings.ready_ms += waitedMs;
    await move('run');
    await runAttempt(deps, record, { ...prepared, signal });
    return await collectAttempt(deps, record, { ...prepared, signal });
  };
  const artifact = await stages.run.run(inRun, { signal });
  await machine.close();

  record.stage = 'evaluate';
  await move('evaluate');
  const inEvaluate = async (waitedMs: number) => {
    record.timings.evaluate_wait_ms += waitedMs;
    await evaluateAttempt(deps, record, { ...prepared, artifact, signal });
  };
  await stages.evaluate.run(inEvaluate, { signal });
}

async function endBadly(deps: AttemptDeps, record: AttemptRecord, reason: unknown): Promise<void> {
  const { store, log, config } = deps;
  const { claimed } = record;
  const ids = { rolloutId: claimed.id, attempt: claimed.attempt };
  try {
    if (reason instanceof Fenced) return log.warn('rollout-fenced', ids);
    if (reason instanceof HandBack) return void (await store.release(claimed));
    const failure = record.failureOf(reason);
    if (failure.code === 'cancelled') return await finish(deps, record, { state: 'cancelled', ...record.partial() });
    const exception = record.exceptionOf(reason);
    log.warn('rollout-failure', { ...ids, ...failure, ...(exception ? { stack: renderStack(exception) } : {}) });
    if (failure.retryable && claimed.retries < claimed.submission.limits.max_retries) {
      return void (await store.retry(claimed, failure, { delayMs: config.retryDelayMs * 2 ** claimed.retries }));
    }
    await finish(deps, record, { state: 'failed', failure, ...record.partial() });
  } catch (error) {
    // The store did not save the end. The lease expires and another worker takes over, so nothing is lost.
    log.error('rollout-end-save-failed', { ...ids, error: messageOf(error) });
  }
}

async function finish({ store, log }: AttemptDeps, { claimed }: AttemptRecord, ending: Ending): Promise<void> {
  if (!(await store.finish(claimed, ending))) log.warn('rollout-fenced', { rolloutId: claimed.id, attempt: claimed.attempt });
}
