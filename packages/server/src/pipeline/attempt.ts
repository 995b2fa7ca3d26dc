// One attempt at a rollout, from its claim to the one write that ends it. The only place where a rollout's moves and its end
// are decided; every failure gets its blame here.

import type { StageName } from '@millrace/protocol';
import type { Log } from '../base/log.ts';
import type { Slot } from '../base/slots.ts';
import type { ClaimedRollout, Ending, Store } from '../store/store.ts';
import { AttemptRecord } from './attempt-record.ts';
import type { PipelineConfig } from './pipeline-config.ts';
import type { Stage } from './stage.ts';
import { collectAttempt, evaluateAttempt, initAttempt, runAttempt, type StageDeps } from './stages.ts';

export interface AttemptDeps extends StageDeps {
  readonly store: Store;
  readonly stages: Readonly<Record<StageName, Stage>>;
  readonly config: PipelineConfig;
  readonly log: Log;
}

/** Aborting with this hands the rollout back to the queue, with nothing charged. */
export class HandBack extends Error {}

/** Aborting with this means that the rollout is another worker's: nothing may be written. */
export class Fenced extends Error {}

export interface AttemptOptions {
  readonly signal: AbortSignal;
  /** The place in the ready buffer, given up when run begins. */
  readonly place: Slot;
}

/** Never rejects: whatever happens is the rollout's end, a retry, a hand-back, or another worker's business. */
export async function runClaimed(deps: AttemptDeps, claimed: ClaimedRollout, options: AttemptOptions): Promise<void> {
  const record = new AttemptRecord(claimed, deps.clock);
  try {
    await runStages(deps, record, options);
    await finish(deps, record, { state: 'done', result: record.result(), trajectory: record.trajectory() });
  } catch (error) {
    await endBadly(deps, record, options.signal.aborted ? options.signal.reason : error);
  } finally {
    options.place[Symbol.dispose]();
  }
}

async function runStages(deps: AttemptDeps, record: AttemptRecord, { signal, place }: AttemptOptions): Promise<void> {
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
    place[Symbol.dispose]();
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
    log.warn('rollout-failure', { ...ids, ...failure });
    if (failure.retryable && claimed.retries < claimed.submission.limits.max_retries) {
      return void (await store.retry(claimed, failure, { delayMs: config.retryDelayMs * 2 ** claimed.retries }));
    }
    await finish(deps, record, { state: 'failed', failure, ...record.partial() });
  } catch (error) {
    // The store did not take the end: the lease runs out and another worker takes over, so nothing is lost.
    log.error('rollout-end-unwritten', { ...ids, error: String(error) });
  }
}

async function finish({ store, log }: AttemptDeps, { claimed }: AttemptRecord, ending: Ending): Promise<void> {
  if (!(await store.finish(claimed, ending))) log.warn('rollout-fenced', { rolloutId: claimed.id, attempt: claimed.attempt });
}
