// The base of the store's contract suite: a store whose clock the test controls, and builders for everything that goes into it.

import type { Clock } from '@millrace/base/clock';
import {
  type ErrorCode,
  errorTable,
  type Failure,
  type RolloutId,
  type RolloutResult,
  rolloutId,
  submission,
  type Trajectory,
  type WorkerId,
  type WorkerReport,
  workerId,
} from '@millrace/protocol';
import type { Claim, ClaimedRollout, NewRollout, Store } from '@millrace/store';
import { FakeClock } from '../../../clock/fake-clock.ts';

/** One fresh, empty database. Closing the bed closes every handle and removes the database. */
export interface StoreBed extends AsyncDisposable {
  readonly store: Store;
  /** Another handle on the same data, as another process would open it. */
  another(): Promise<Store>;
}

export type OpenBed = (clock: Clock) => Promise<StoreBed>;

export type TimedBed = StoreBed & { readonly clock: FakeClock };

export async function openTimedBed(openBed: OpenBed): Promise<TimedBed> {
  const clock = new FakeClock();
  const bed = await openBed(clock);
  return { clock, store: bed.store, another: () => bed.another(), [Symbol.asyncDispose]: () => bed[Symbol.asyncDispose]() };
}

export const leaseMs = 10_000;
export const maxLosses = 3;
export const roomy = { maxQueued: 100_000 };

export function makeRollout(id: string, changes: Record<string, unknown> = {}): NewRollout {
  const body = { scenario: 'math', task: { question: `what is ${id}?` }, ...changes };
  return { id: rolloutId.parse(id), submission: submission.parse(body), digest: JSON.stringify(body) };
}

export function makeId(id: string): RolloutId {
  return rolloutId.parse(id);
}

export async function submitAll(store: Store, ids: readonly string[], changes: Record<string, unknown> = {}): Promise<void> {
  await store.submit(
    ids.map((id) => makeRollout(id, changes)),
    roomy,
  );
}

export async function registerWorker(store: Store, name: string, host = 'host'): Promise<WorkerId> {
  const id = workerId.parse(name);
  await store.registerWorker({ id, host, pid: 1 }, { leaseMs });
  return id;
}

/** Submits one rollout and claims it. */
export async function claimOne(store: Store, options: { readonly id: string; readonly worker: WorkerId }): Promise<ClaimedRollout> {
  await submitAll(store, [options.id]);
  const [claim] = await store.claim(options.worker, 1);
  if (claim?.id !== options.id) throw new Error(`claimed ${claim?.id}, not ${options.id}`);
  return claim;
}

const path = ['ready', 'run', 'evaluate'] as const;

/** Moves a new claim forward to `state`. */
export async function moveUpTo(store: Store, claim: Claim, state: 'init' | (typeof path)[number]): Promise<void> {
  if (state === 'init') return;
  for (const next of path.slice(0, path.indexOf(state) + 1)) await store.move(claim, next);
}

export function makeResult(reward: number | null): RolloutResult {
  return {
    reward,
    score: { passed: 3 },
    stop_reason: 'completed',
    turns: 2,
    tokens: { prompt: 10, sampled: 5, observation: 3 },
    malformed_calls: 0,
    policy_versions: { first: 1, last: 2 },
    backends: [],
    timings: {
      queued_ms: 1,
      init_ms: 2,
      ready_ms: 3,
      run_ms: 4,
      cache_wait_ms: 9,
      evaluate_wait_ms: 5,
      evaluate_ms: 6,
      model_ms: 7,
      tool_ms: 8,
    },
  };
}

/** Contains numbers that careless copies lose: the largest id, negative zero, infinity, the smallest float. */
export function makeTrajectory(id: string, attempt: number): Trajectory {
  const empty = new Float32Array();
  const tokenIds = Int32Array.from([1, 2, 151_643, 2_147_483_647]);
  const logprobs = Float32Array.from([-0, -0.1, Number.NEGATIVE_INFINITY, 1.4e-45]);
  return {
    rolloutId: id,
    attempt,
    model: 'tiny',
    tools: [{ name: 'bash', description: 'runs a command', parameters: { type: 'object' } }],
    segments: [
      {
        kind: 'prompt',
        turn: 0,
        text: 'π 😀',
        messages: [{ role: 'user', content: 'π 😀' }],
        tokenIds: Int32Array.from([7, 8]),
        logprobs: empty,
      },
      { kind: 'sampled', turn: 1, text: 'x', messages: [], finish_reason: 'stop', tokenIds, logprobs },
    ],
  };
}

export function makeFailure(code: ErrorCode, attempt: number): Failure {
  const { blame, retryable } = errorTable[code];
  return { code, message: `it was ${code}`, blame, retryable, stage: 'run', attempt };
}

export function makeReport(turns: number): WorkerReport {
  const stage = { active: 1, waiting: 2, slots: 3 };
  return {
    stages: { init: stage, ready: stage, run: stage, evaluate: stage },
    held: 1,
    backends: { a: 1 },
    turns,
    sampled_tokens: 0,
    loop_lag_ms: { p50: 0, p99: 1, max: 2 },
    rss_bytes: 1,
  };
}
