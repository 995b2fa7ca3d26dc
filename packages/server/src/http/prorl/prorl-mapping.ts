// Converts between ProRL Agent's wire format and ours; pure. Without a measured reward there is no reward.

import type {
  CriticalError,
  Message,
  ProcessReply,
  ProcessRequest,
  ProrlMessage,
  ProrlStatus,
  ServiceStatus,
  ToolCall,
  Trajectory,
} from '@millrace/protocol';
import type { Scenario } from '../../scenario/scenario.ts';
import type { RolloutRecord } from '../../store/rollout-record.ts';

type Instance = ProcessRequest['instance'];

const routingFields = new Set(['data_source', 'instance_id', 'trajectory_id', 'data_kind', 'extra_info']);

export function toScenarioName({ data_source: source }: Instance): string {
  return typeof source === 'string' ? source : 'swebench';
}

export function toTask(scenario: Scenario, instance: Instance): unknown {
  if (scenario.fromInstance !== undefined) return scenario.fromInstance(instance);
  return Object.fromEntries(Object.entries(instance).filter(([name]) => !routingFields.has(name)));
}

/** Their sampling parameters under our names, unchecked; unknown parameters are ignored. */
export function toSettings(params: ProcessRequest['sampling_params']): {
  sampling: Record<string, unknown>;
  limits: Record<string, unknown>;
} {
  const { temperature, top_p, seed, max_output_tokens: max_tokens, max_iterations: max_turns } = params;
  return { sampling: dropAbsent({ temperature, top_p, seed, max_tokens }), limits: dropAbsent({ max_turns }) };
}

/** The id that the caller expects, in the characters that ids allow; absent when the request names none. */
export function toWantedId({ job_id: jobId, instance }: ProcessRequest): string | undefined {
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

export function toProcessReply(instance: Instance, record: RolloutRecord, trajectory: Trajectory | undefined): ProcessReply {
  const { state, result, failure } = record;
  const reward = result?.reward ?? null;
  const stopReason = result?.stop_reason ?? undefined;
  const finish = stopReason === 'completed' || stopReason === 'tool_stopped';
  return {
    git_patch: '',
    success: state === 'done',
    error: state === 'done' ? null : failure === undefined ? state : `${failure.code}: ${failure.message}`,
    finish,
    messages: trajectory === undefined ? [] : toMessages(trajectory),
    tools: (trajectory?.tools ?? []).map((tool) => ({ type: 'function', function: { ...tool } })),
    end_properly: finish || stopReason === 'max_turns',
    resolved: reward !== null && reward > 0.99,
    critical_error: state === 'done' ? null : toCriticalError(record),
    instance_id: instance.instance_id ?? null,
    trajectory_id: instance.trajectory_id ?? null,
    filter: state !== 'done' || reward === null,
    timing: toTiming(record),
    reward,
    rollout_id: record.id,
    failure: failure ?? null,
  };
}

/** Each assistant message carries the sampled tokens and the full prompt they were sampled from. */
export function toMessages({ segments }: Pick<Trajectory, 'segments'>): ProrlMessage[] {
  const seen: number[] = [];
  const messages: ProrlMessage[] = [];
  for (const { kind, tokenIds, logprobs, text, messages: carried } of segments) {
    const ids = Array.from(tokenIds);
    if (kind === 'prompt') seen.length = 0; // a rewritten history starts over
    if (kind === 'sampled') {
      const said = carried.find((message) => message.role === 'assistant') ?? { role: 'assistant', content: text };
      messages.push({ ...toMessage(said), token_ids: ids, input_ids: seen.slice(), logprobs: Array.from(logprobs) });
    } else messages.push(...carried.map(toMessage));
    for (const id of ids) seen.push(id);
  }
  return messages;
}

export function toProrlStatus({ rollouts, workers }: ServiceStatus, pending: number): ProrlStatus {
  const { queued, init, ready, run, evaluate } = rollouts;
  const reports = workers.flatMap(({ alive, report }) => (alive && report !== null ? [report] : []));
  const waiting = Math.min(evaluate, sum(reports.map((report) => report.stages.evaluate.waiting)));
  return {
    status: 'running',
    pending_jobs: pending,
    init_queue: queued,
    run_queue: ready,
    eval_queue: waiting,
    active_init: init,
    active_run: run,
    active_eval: evaluate - waiting,
    total: sum([queued, init, ready, run, evaluate]),
  };
}

function toMessage({ tool_calls: calls, ...rest }: Message): ProrlMessage {
  return calls === undefined ? rest : { ...rest, tool_calls: calls.map(toToolCall) };
}

function toToolCall({ id, name, arguments: given }: ToolCall) {
  return { id, type: 'function' as const, function: { name, arguments: JSON.stringify(given) } };
}

function toCriticalError({ failure, result }: RolloutRecord): CriticalError {
  if (failure?.code.endsWith('-timeout') === true || result?.stop_reason === 'rollout_timeout') return 'timeout';
  const stage = failure?.stage ?? (result === undefined ? 'init' : 'run');
  return stage === 'evaluate' ? 'eval' : stage;
}

function toTiming(record: RolloutRecord): ProcessReply['timing'] {
  const { init_ms = 0, run_ms = 0, evaluate_ms = 0, queued_ms = 0, ready_ms = 0, evaluate_wait_ms = 0 } = record.result?.timings ?? {};
  return {
    init_time: init_ms / 1000,
    run_time: run_ms / 1000,
    eval_time: evaluate_ms / 1000,
    others_time: (queued_ms + ready_ms + evaluate_wait_ms) / 1000,
    counted_elapsed: (init_ms + run_ms + evaluate_ms) / 1000,
    timeout_triggered: record.failure?.code.endsWith('-timeout') === true || record.result?.stop_reason === 'rollout_timeout',
  };
}

function dropAbsent(values: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined && value !== null));
}

function isName(value: unknown): value is string | number {
  return typeof value === 'string' || typeof value === 'number';
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
