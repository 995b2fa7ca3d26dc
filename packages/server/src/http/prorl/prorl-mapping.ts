// The end of a rollout as ProRL Agent's result; pure. Its semantics hold here only: a limit that stopped the agent is an error that excludes
// the rollout from training, and a timeout is never resolved. Without a measured reward there is no reward.

import type { CriticalError, ProcessReply, ProcessRequest, ProrlStatus, ServiceStatus, StopReason, Trajectory } from '@millrace/protocol';
import { type Scenario, withoutRoutingFields } from '@millrace/scenarios';
import type { RolloutRecord } from '@millrace/store';
import { toMessages } from './prorl-messages.ts';

type Instance = ProcessRequest['instance'];

export function toTask(scenario: Scenario, instance: Instance): unknown {
  return scenario.fromInstance === undefined ? withoutRoutingFields(instance) : scenario.fromInstance(instance);
}

/** The id that the caller expects, in the characters that ids allow; absent when the request names none. */
export function toWantedId({ job_id: jobId, instance }: Pick<ProcessRequest, 'job_id' | 'instance'>): string | undefined {
  const { instance_id: instanceId, trajectory_id: trajectoryId } = instance;
  const name = jobId ?? (isName(instanceId) && isName(trajectoryId) ? `${instanceId}-${trajectoryId}` : '');
  const safe = name.replace(/[^A-Za-z0-9._:-]/g, '-').replace(/^[^A-Za-z0-9]+/, '');
  return safe === '' ? undefined : safe.slice(0, 128);
}

/** Clients send both `host:port` and addresses with a trailing /v1. */
export function toBackendUrl(address: string): string {
  const url = /^\w+:\/\//.test(address) ? address : `http://${address}`;
  return url.replace(/\/+$/, '').replace(/\/v1$/, '').replace(/\/+$/, '');
}

interface EndOptions {
  readonly trajectory?: Trajectory | undefined;
  /** The time of a job, in which init, run and evaluate count together. */
  readonly timeoutS: number;
}

export function toProcessReply(instance: Instance, record: RolloutRecord, { trajectory, timeoutS }: EndOptions): ProcessReply {
  const { result, failure } = record;
  const reward = result?.reward ?? null;
  const stopReason = result?.stop_reason ?? undefined;
  const timing = toTiming(record, timeoutS);
  const critical = toCriticalError(record, timing.timeout_triggered);
  const error = toError(record, critical, timeoutS);
  return {
    git_patch: toPatch(result?.score),
    success: error === null,
    error,
    finish: stopReason === 'tool_stopped',
    messages: trajectory === undefined ? [] : toMessages(trajectory),
    tools: (trajectory?.tools ?? []).map((tool) => ({ type: 'function', function: { ...tool } })),
    end_properly: critical === null && stopReason !== 'max_tokens' && stopReason !== 'parse_error',
    resolved: critical === null && reward !== null && reward > 0.99,
    critical_error: critical,
    instance_id: instance.instance_id ?? null,
    trajectory_id: instance.trajectory_id ?? null,
    // Malformed calls are the policy's own mistake, from which it learns.
    filter: critical !== null || reward === null || (error !== null && stopReason !== 'parse_error'),
    timing,
    reward,
    rollout_id: record.id,
    failure: failure ?? null,
  };
}

export function toProrlStatus({ rollouts, workers }: ServiceStatus, pending: number): ProrlStatus {
  const { queued, init, ready, run, evaluate } = rollouts;
  const reports = workers.flatMap(({ alive, report }) => (alive && report !== null ? [report] : []));
  const waiting = Math.min(evaluate, sum(reports.map((report) => report.stages.evaluate.waiting)));
  return {
    status: 'running',
    running: true,
    pending_jobs: pending,
    init_queue: queued,
    run_queue: ready,
    eval_queue: waiting,
    active_init: init,
    active_run: run,
    active_eval: evaluate - waiting,
    total: sum([queued, init, ready, run, evaluate]),
    jobs: pending,
    init,
    run,
    eval: evaluate - waiting,
  };
}

/** The names of its exceptions: its own code and its users look for them in the text. */
const stopErrors: Readonly<Record<StopReason, string | null>> = {
  completed: null,
  tool_stopped: null,
  max_turns: 'RuntimeError: Agent reached maximum iteration in headless mode',
  max_tokens: 'AgentFormatError: the turn was cut at its maximum length',
  context_overflow: 'ContextWindowExceededError: the context is full',
  parse_error: 'AgentToolCallError: several turns in a row had no call that could be read',
  rollout_timeout: 'TimeoutError: the agent ran out of time',
  loop: 'AgentStuckInLoopError: the agent repeated the same calls',
};

/** A rollout that the policy ended itself, with the lowest reward, is trained on: its `failure` says why. */
function toError({ state, failure, result }: RolloutRecord, critical: CriticalError | null, timeoutS: number): string | null {
  if (state !== 'done') return failure === undefined ? state : `${failure.code}: ${failure.message}`;
  const stopped = result?.stop_reason ? stopErrors[result.stop_reason] : null;
  return stopped ?? (critical === 'timeout' ? `TimeoutError: the job took more than ${timeoutS} s` : null);
}

function toCriticalError({ state, failure, result }: RolloutRecord, isLate: boolean): CriticalError | null {
  if (isLate) return 'timeout';
  if (state === 'done') return null;
  const stage = failure?.stage ?? (result === undefined ? 'init' : 'run');
  return stage === 'evaluate' ? 'eval' : stage;
}

function toTiming({ result, failure }: RolloutRecord, timeoutS: number): ProcessReply['timing'] {
  const { init_ms = 0, run_ms = 0, evaluate_ms = 0 } = result?.timings ?? {};
  const { queued_ms = 0, ready_ms = 0, cache_wait_ms = 0, evaluate_wait_ms = 0 } = result?.timings ?? {};
  const counted = (init_ms + run_ms + evaluate_ms) / 1000;
  return {
    init_time: init_ms / 1000,
    run_time: run_ms / 1000,
    eval_time: evaluate_ms / 1000,
    others_time: (queued_ms + ready_ms + cache_wait_ms + evaluate_wait_ms) / 1000,
    counted_elapsed: counted,
    timeout_triggered: counted > timeoutS || failure?.code.endsWith('-timeout') === true || result?.stop_reason === 'rollout_timeout',
  };
}

function toPatch(score: Readonly<Record<string, unknown>> | undefined): string {
  const patch = score?.git_patch ?? score?.patch;
  return typeof patch === 'string' ? patch : '';
}

function isName(value: unknown): value is string | number {
  return typeof value === 'string' || typeof value === 'number';
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
