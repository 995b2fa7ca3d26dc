// A pipeline on a fake clock: it claims from a real store like a worker and ends each rollout at its scripted time, so hours of
// sampling pass in seconds and runs are reproducible.

import { type ErrorCode, type RolloutResult, type WorkerId, workerId } from '@millrace/protocol';
import type { ClaimedRollout, Ending, Store } from '@millrace/store';
import type { FakeClock } from '../../../clock/fake-clock.ts';
import { makeFailure, makeReport, makeResult, makeTrajectory } from './bed.ts';

/** The outcome of one rollout; without a reward it fails. */
export interface Course {
  readonly seconds: number;
  readonly tokens: number;
  readonly reward?: number;
  /** The code of the failure; `sandbox-died` unless set. */
  readonly failure?: ErrorCode;
}

export interface SimulatedPipelineOptions {
  readonly store: Store;
  readonly clock: FakeClock;
  readonly slots: number;
  course(rollout: ClaimedRollout): Course;
  /** The current policy version. */
  version?(): number;
}

interface SimulatedRollout {
  readonly claim: ClaimedRollout;
  readonly course: Course;
  readonly version: number;
  readonly startMs: number;
  readonly endMs: number;
}

const leaseMs = 10 ** 12;

export class SimulatedPipeline {
  readonly #options: SimulatedPipelineOptions;
  readonly #worker: WorkerId;
  readonly #running = new Map<string, SimulatedRollout>();
  /** Totals over all rollouts, including stopped ones. */
  readonly spent = { rollouts: 0, seconds: 0, tokens: 0 };

  constructor(options: SimulatedPipelineOptions) {
    this.#options = options;
    this.#worker = workerId.parse(`simulated-${Math.trunc(options.clock.now())}`);
  }

  get busy(): number {
    return this.#running.size;
  }

  async start(): Promise<void> {
    const { store } = this.#options;
    await store.registerWorker({ id: this.#worker, host: 'simulated', pid: 1 }, { leaseMs });
    await this.stopCancelled();
  }

  /** Fills its slots from the queue. */
  async claim(): Promise<void> {
    const { store, clock, slots, course, version } = this.#options;
    const claims = await store.claim(this.#worker, slots - this.#running.size);
    const startMs = clock.now();
    for (const claim of claims) {
      const outcome = course(claim);
      this.#running.set(claim.id, {
        claim,
        course: outcome,
        version: version?.() ?? 0,
        startMs,
        endMs: startMs + Math.ceil(outcome.seconds * 1000),
      });
    }
    await Promise.all(claims.flatMap((claim) => (['ready', 'run'] as const).map((to) => store.move(claim, to))));
  }

  /** Ends the rollouts that were asked to cancel. */
  async stopCancelled(): Promise<number> {
    const report = makeReport(0);
    const stages = { ...report.stages, run: { active: this.busy, waiting: 0, slots: this.#options.slots } };
    const { cancelled } = await this.#options.store.renew(this.#worker, { leaseMs, report: { ...report, stages } });
    await Promise.all(cancelled.map((id) => this.#end(id, 'cancelled')));
    return cancelled.length;
  }

  /** Advances the clock to the next end and ends that rollout. False when nothing runs. */
  async step(): Promise<boolean> {
    const next = [...this.#running.values()].reduce<SimulatedRollout | undefined>(
      (best, one) => (best && best.endMs <= one.endMs ? best : one),
      undefined,
    );
    if (next === undefined) return false;
    const { clock } = this.#options;
    clock.advance(Math.max(0, next.endMs - clock.now()));
    await this.#end(next.claim.id, next.course.reward === undefined ? 'failed' : 'done');
    return true;
  }

  async #end(id: string, state: Ending['state']): Promise<void> {
    const running = this.#running.get(id);
    if (running === undefined) return;
    this.#running.delete(id);
    const { claim, course, startMs, endMs, version } = running;
    const share = Math.min(1, (this.#options.clock.now() - startMs) / Math.max(1, endMs - startMs));
    const [seconds, tokens] = [course.seconds * share, Math.round(course.tokens * share)];
    this.spent.rollouts += 1;
    this.spent.seconds += seconds;
    this.spent.tokens += tokens;
    const base = makeResult(state === 'done' ? (course.reward ?? null) : null);
    const result: RolloutResult = {
      ...base,
      tokens: { ...base.tokens, sampled: tokens },
      policy_versions: { first: version, last: version },
      timings: { ...base.timings, init_ms: 0, run_ms: seconds * 1000, evaluate_ms: 0 },
    };
    const { store } = this.#options;
    const moved = state === 'done' ? store.move(claim, 'evaluate') : undefined;
    const finished = store.finish(claim, toEnding(running, state, result));
    await Promise.all([moved, finished]);
  }
}

function toEnding({ claim, course }: SimulatedRollout, state: Ending['state'], result: RolloutResult): Ending {
  if (state === 'done') return { state, result, trajectory: makeTrajectory(claim.id, claim.attempt) };
  const trajectory = makeTrajectory(claim.id, claim.attempt);
  if (state === 'failed') return { state, result, trajectory, failure: makeFailure(course.failure ?? 'sandbox-died', claim.attempt) };
  return { state, result };
}
