// What one attempt has produced so far: its sandbox, ledger, timings and score. It is created at the claim, so that the
// results so far are kept however the attempt ends.

import type { Clock } from '@millrace/base/clock';
import { Expired } from '@millrace/base/deadline';
import { inSpan, type TraceSpan } from '@millrace/base/trace-span';
import type { ModelDigests } from '@millrace/model';
import {
  definedOf,
  type Failure,
  type Provenance,
  RolloutError,
  type RolloutResult,
  type StageName,
  type Timings,
  type Trajectory,
  toRolloutError,
} from '@millrace/protocol';
import type { InstalledHarness, Sandbox } from '@millrace/sandbox';
import type { AgentEnd, Opened, Scenario, Score } from '@millrace/scenarios';
import type { ClaimedRollout } from '@millrace/store';
import type { AgentTally } from '../../agent/agent-options.ts';
import type { JoinedLedger } from '../../gateway/gateway-book.ts';
import { toStageSpan } from '../../inference/span-names.ts';
import type { ResumePoint } from '../continue/continuation.ts';
import type { WorkerLeave } from '../continue/turn-keeper.ts';
import { AttemptSandbox } from './attempt-sandbox.ts';

/** The code of a plain error or an expired deadline, by the stage in which it happened. */
const stageErrors = {
  init: { failed: 'init-failed', expired: 'init-timeout' },
  // When the agent's own time is up, that is a stop reason. What expires here is the time to collect its results, which the agent made slow.
  run: { failed: 'run-failed', expired: 'policy-failed' },
  evaluate: { failed: 'evaluate-failed', expired: 'evaluate-timeout' },
} as const;

/** The codes that a plain error may get. */
const exceptionCodes: ReadonlySet<string> = new Set(['internal', ...Object.values(stageErrors).map(({ failed }) => failed)]);

/** What init passes to the later stages. */
export interface Prepared {
  readonly scenario: Scenario;
  readonly task: unknown;
  readonly opening: Opened;
  readonly sandbox?: Sandbox;
  /** The folders that have all that programs of the sandbox can change; absent if not all is in folders that are known. */
  readonly folders?: readonly string[];
  /** The turns after which the run continues. */
  readonly continuation?: ResumePoint;
}

/** What was sampled: by the sampler of the agent, or by those of a gateway. */
interface SampledRecord {
  readonly ledger: JoinedLedger;
  readonly cacheWaitMs: number;
}

export class AttemptRecord {
  readonly claimed: ClaimedRollout;
  readonly sandbox = new AttemptSandbox();
  readonly tally: AgentTally = { turns: 0, malformedCalls: 0, modelMs: 0, toolMs: 0 };
  readonly timings: Timings;
  stage: StageName | undefined;
  /** Of the attempt, and of its stage; absent if the rollout is not traced. */
  span: TraceSpan | undefined;
  stageSpan: TraceSpan | undefined;
  sampler: SampledRecord | undefined;
  model = '';
  digests: ModelDigests | undefined;
  /** The date and time that its chat template writes. */
  date: string | undefined;
  tools: Trajectory['tools'] = [];
  stop: AgentEnd | undefined;
  score: Score | undefined;
  /** The harness that acts, if it is not our turn loop, and the branches of its history. */
  harness: InstalledHarness | undefined;
  harnessReport: ((reward: number | null) => object) | undefined;
  /** From where it continued. */
  continued: RolloutResult['continued'];
  /** Of its worker; absent if it has none. */
  readonly leaving?: WorkerLeave;
  /** What the scenario has to do when the attempt has ended. */
  readonly closers: (() => Promise<void>)[] = [];

  constructor(claimed: ClaimedRollout, clock: Clock, leaving?: WorkerLeave) {
    this.claimed = claimed;
    if (leaving) this.leaving = leaving;
    this.timings = {
      queued_ms: Math.max(0, clock.now() - claimed.queuedAtMs),
      init_ms: 0,
      ready_ms: 0,
      run_ms: 0,
      cache_wait_ms: 0,
      evaluate_wait_ms: 0,
      evaluate_ms: 0,
      model_ms: 0,
      tool_ms: 0,
    };
  }

  /** The work of a stage, after it waited for its slot. */
  async inStage<T>(stage: StageName, waitedMs: number, work: () => Promise<T>): Promise<T> {
    return await inSpan(this.span?.begin(toStageSpan(stage, waitedMs)), async (span) => {
      this.stageSpan = span;
      return await work();
    });
  }

  result(): RolloutResult {
    const segments = this.sampler?.ledger.segments ?? [];
    const sampled = segments.filter((segment) => segment.kind === 'sampled');
    const versions = sampled.flatMap(({ policy_versions }) => (policy_versions ? [policy_versions.first, policy_versions.last] : []));
    return {
      reward: this.score?.reward ?? null,
      score: { ...this.score?.details, ...definedOf({ harness: this.#describeHarness() }) },
      stop_reason: this.stop?.stopReason ?? null,
      turns: this.tally.turns,
      tokens: this.sampler?.ledger.counts ?? { prompt: 0, sampled: 0, observation: 0 },
      malformed_calls: this.tally.malformedCalls,
      policy_versions: versions.length > 0 ? { first: Math.min(...versions), last: Math.max(...versions) } : null,
      ...definedOf({ continued: this.continued }),
      backends: [...new Set(sampled.flatMap(({ backend }) => (backend ? [backend] : [])))],
      timings: {
        ...this.timings,
        cache_wait_ms: this.sampler?.cacheWaitMs ?? 0,
        model_ms: this.tally.modelMs,
        tool_ms: this.tally.toolMs,
      },
      ...definedOf({ trace_id: this.span?.traceId }),
    };
  }

  #describeHarness(): object | undefined {
    const { name, version } = this.harness?.harness ?? {};
    return name === undefined ? undefined : { name, version, ...this.harnessReport?.(this.score?.reward ?? null) };
  }

  trajectory(): Trajectory {
    const { id, attempt } = this.claimed;
    const segments = this.sampler?.ledger.segments ?? [];
    return { rolloutId: id, attempt, model: this.model, tools: this.tools, provenances: this.#provenances(), segments };
  }

  #provenances(): Provenance[] {
    const { tokenizer = null, template = '' } = this.digests ?? {};
    const shared = { tokenizer_sha256: tokenizer, template_sha256: template };
    const engines = this.sampler?.ledger.engines ?? [];
    // In the order of the schema, in which clients write them again.
    return engines.map(({ engine_model, generation, logprobs_without, ...engine }) => ({
      ...engine,
      ...shared,
      ...definedOf({ engine_model, generation, logprobs_without, date: this.date }),
    }));
  }

  /** What is kept of an attempt that did not complete. */
  partial(): { result: RolloutResult; trajectory?: Trajectory } {
    const result = this.result();
    return this.sampler && this.sampler.ledger.length > 0 ? { result, trajectory: this.trajectory() } : { result };
  }

  failureOf(reason: unknown): Failure {
    const { code, message, blame, retryable } = this.errorOf(reason);
    return { code, message, blame, retryable, stage: this.stage ?? null, attempt: this.claimed.attempt };
  }

  /** The plain error behind a failure, thrown by a scenario or by a bug; undefined if the failure is a typed error. */
  exceptionOf(reason: unknown): Error | undefined {
    const { code, cause } = this.errorOf(reason);
    return exceptionCodes.has(code) && cause instanceof Error ? cause : undefined;
  }

  /** What was thrown, with the blame of the stage in which it was. */
  errorOf(reason: unknown): RolloutError {
    if (!this.stage) return toRolloutError(reason, 'internal');
    const { failed, expired } = stageErrors[this.stage];
    return this.#blame(this.stage, toRolloutError(reason, reason instanceof Expired ? expired : failed));
  }

  /** The agent is blamed once it has acted, and never before: what its sandbox refuses while it runs, it has caused. */
  #blame(stage: StageName, error: RolloutError): RolloutError {
    const hasActed = this.tally.turns > 0 || this.stop !== undefined;
    if (hasActed && stage === 'run' && error.code === 'sandbox-refused') return new RolloutError('policy-failed', error.message);
    if (error.blame !== 'policy' || hasActed) return error;
    return new RolloutError(stage === 'init' ? 'init-failed' : 'sandbox-failed', error.message);
  }
}
