// What a worker reports with each renewal of its lease, and how often.

import type { PauseRules } from '@millrace/base/clock';
import type { LoopLag } from '@millrace/base/loop-lag';
import { definedOf, type MachineReport, type WorkerReport } from '@millrace/protocol';
import type { BackendPool } from '../inference/pool/pool.ts';
import type { TokenRate } from '../inference/pool/token-rate.ts';
import type { PipelineConfig } from './attempt/pipeline-config.ts';
import type { Stage } from './attempt/stage.ts';

/** Longer while the store is slow: with a thousand machines, renewals would otherwise be most of its work. */
export function toRenewPause(leaseMs: number): PauseRules {
  const leastMs = Math.min(1000, leaseMs / 3);
  return { leastMs, mostMs: Math.max(leastMs, leaseMs / 5) };
}

/** What runs on each backend is counted over all machines, for each of them: with many rollouts in flight it is looked at less often. */
export const loadsPause: PauseRules = { leastMs: 1000, mostMs: 30_000, share: 0.001 };

export interface ReportDeps {
  readonly loopLag: LoopLag;
  readonly pool: BackendPool;
  readonly config: PipelineConfig;
  /** The machine that the worker runs on. */
  readonly machine?: MachineReport;
  readonly gateways?: { readonly url: string };
}

interface WorkerNow {
  readonly stages: Readonly<Record<'init' | 'run' | 'evaluate', Stage>>;
  readonly readySlots: number;
  readonly held: number;
  readonly turns: number;
  readonly tokenRate: TokenRate;
  readonly isDraining: boolean;
}

export function toWorkerReport({ loopLag, pool, config, machine, gateways }: ReportDeps, now: WorkerNow): WorkerReport {
  const { init, run, evaluate } = now.stages;
  const { sampledTokens } = pool.traffic;
  const ready = { active: run.report.waiting, waiting: 0, slots: now.readySlots };
  return {
    stages: { init: init.report, ready, run: run.report, evaluate: evaluate.report },
    held: now.held,
    backends: pool.inFlight(),
    calls: pool.calls(),
    call_progress: pool.callProgress(),
    held_for_cache: pool.heldForCache(),
    turns: now.turns,
    sampled_tokens: sampledTokens,
    tokens_per_s: now.tokenRate.read(sampledTokens),
    loop_lag_ms: loopLag.read(),
    rss_bytes: process.memoryUsage.rss(),
    lease_ms: config.leaseMs,
    ...definedOf({ machine, gateway_url: gateways?.url, draining: now.isDraining || undefined }),
  };
}
