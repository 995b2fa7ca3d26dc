// The golden files: each reply of the API once, with every field, as it is on the wire. The schemas and the Python client both read them,
// which keeps the two in step. `node packages/protocol/test/golden.ts` writes them.

import { writeFileSync } from 'node:fs';
import {
  ackReply,
  backendList,
  batchList,
  cancelReply,
  dropText,
  errorBody,
  evaluationList,
  evaluationTaskPage,
  event,
  forkReply,
  groupPage,
  leaveReply,
  limits,
  machineList,
  policyView,
  rolloutList,
  rolloutView,
  sampling,
  savedTurnList,
  serviceStatus,
  submitReply,
  toBinary,
  toGroupsPart,
  toGroupsStart,
  toTrajectoryView,
  trainerSampleList,
  trainerStepList,
  trajectoryView,
  workerSettings,
} from '@millrace/protocol';
import type { ZodType } from 'zod';
import { makeBranchedTrajectory, makeRolloutView, makeTrajectory } from './examples.ts';

export interface Golden {
  readonly schema: ZodType;
  readonly value: unknown;
}

const at = '2026-01-02T03:04:05.678Z';
const lag = { p50: 0.5, p99: 12, max: 40.25 };
const stage = { active: 1, waiting: 2, slots: 4 };
const backend = {
  id: '10.0.0.1:8000',
  url: 'http://10.0.0.1:8000',
  dialect: 'vllm',
  model: 'tiny',
  policy_version: 4,
  logprobs_mode: 'processed',
  logprobs_reason: 'its server reports processed_logprobs',
  probe: {
    engine: 'vllm',
    version: '0.32.0',
    model: 'tiny',
    context_length: 32_768,
    tokenizer: 'unchecked',
    tokenizer_reason: 'POST /tokenize answered 404',
    several: true,
    at,
  },
  generation: 3,
  route: '/v1/completions',
  route_reason: '/inference/v1/generate answered 403: Scale-out endpoints are disabled.',
  state: 'up',
  health: 'broken',
  broken_for: ['node-2'],
  last_error: { message: 'connection refused', at },
  in_flight: 3,
  calls: 2,
  call_progress: { oldest_call_ms: 61_000, last_token_ms: 350, tokens_per_s: 61.5 },
  held_for_cache: 1,
  tokens: 4096,
  note: null,
};
const machine = {
  id: 'm-0123456789abcdef',
  name: 'node-1',
  labels: { gpu: 'h100' },
  scenarios: ['math', 'shell'],
  sandboxes: { driver: 'apptainer', default_image: false, network: 'none', host_network: false, user_namespaces: false },
  cpus: 64,
  memory_bytes: 274_877_906_944,
};
const machineSeen = {
  ...machine,
  versions: ['0.2.0', '0.3.0'],
  state: 'live',
  workers: 8,
  held: 40,
  slots: { init: 64, run: 2048, evaluate: 64 },
  heartbeat_age_ms: 850,
  started_at: at,
};
const report = {
  stages: { init: stage, ready: stage, run: stage, evaluate: stage },
  held: 5,
  backends: { '10.0.0.1:8000': 3 },
  calls: { '10.0.0.1:8000': 2 },
  call_progress: { '10.0.0.1:8000': { oldest_call_ms: 61_000, last_token_ms: null, tokens_per_s: 0 } },
  held_for_cache: { '10.0.0.1:8000': 1 },
  turns: 100,
  sampled_tokens: 12_345,
  tokens_per_s: 61.5,
  loop_lag_ms: lag,
  rss_bytes: 150_000_000,
  machine: { ...machine, version: '0.2.0' },
  lease_ms: 15_000,
  draining: true,
  gateway_url: 'http://10.0.0.7:40123',
};
const rollouts = { queued: 1, init: 0, ready: 0, run: 2, evaluate: 0, done: 3, failed: 0, cancelled: 0 };
const workers = [
  { id: 'w-1', host: 'node-1', pid: 42, started_at: at, alive: true, report },
  { id: 'w-2', host: 'node-2', pid: 43, started_at: at, alive: false, report: null },
];

const openBatch = {
  id: 'b-1',
  series: 's-1',
  scenario: 'math',
  target: 8,
  delivered: 3,
  open_groups: 2,
  mean_reward: 0.625,
  created_at: at,
};

const waste = { rollouts: 1, tokens: 100, seconds: 2.5 };
const batch = {
  id: 'b-1',
  series: 's-1',
  state: 'open',
  scenario: 'math',
  group_size: 2,
  target: 8,
  groups: { open: 2, delivered: 3, uniform: 1, failed: 0, surplus: 0, stale: 0 },
  carried: 1,
  tasks: { given: 10, begun: 6, closed: false },
  informative_share: 0.75,
  mean_reward: 0.625,
  wasted: { uniform: waste, failed: waste, surplus: waste, stale: waste },
  created_at: at,
  ended_at: null,
  metadata: { step: 7 },
};

const evaluation = {
  id: 'e-1',
  state: 'open',
  scenario: 'math',
  tasks: 3,
  n: 2,
  samples: { total: 6, begun: 6, ended: 5, scored: 4, unscored: 1, correct: 2 },
  mean: { value: 0.5625, standard_error: 0.25, lower: 0.45, tasks: 3 },
  pass_at: [
    { k: 1, value: 0.5, standard_error: 0.25, lower: 0.5, tasks: 3 },
    { k: 2, value: null, standard_error: null, lower: null, tasks: 0 },
  ],
  pass_all: [{ k: 1, value: 0.5, standard_error: 0.25, lower: 0.5, tasks: 3 }],
  failures: [{ blame: 'verifier', code: 'evaluate-timeout', samples: 1, scored: 0 }],
  stop_reasons: { completed: 4, max_turns: 1 },
  turns: 11,
  sampled_tokens: 1234,
  policy_versions: { first: 3, last: 4 },
  sampling: sampling.parse({
    temperature: 0.6,
    top_k: 20,
    seed: 7,
    stop: ['</answer>'],
    stop_token_ids: [13],
    include_stop_str_in_output: true,
    min_tokens: 2,
    logit_bias: { '42': -1.5 },
    structured_outputs: { json: { type: 'object' }, regex: undefined, choice: undefined, grammar: undefined },
    routed_experts: true,
    sampling_mask: true,
  }),
  limits: limits.parse({ max_staleness: 2, max_repeated_calls: 5 }),
  correct_at: 0.75,
  created_at: at,
  ended_at: null,
  metadata: { step: 7 },
};
const newEvaluation = {
  ...evaluation,
  id: 'e-2',
  waiting: 'no live machine has gpu=a100 (live: node-1 gpu=t4)',
  policy_versions: null,
  correct_at: null,
  metadata: null,
  mean: { value: null, standard_error: null, lower: null, tasks: 0 },
};
const sample = { rollout: 'e-1:0:0', state: 'done', reward: 0.5, stop_reason: 'completed', failure: null };
const evaluationTask = {
  index: 0,
  task: { question: '1 + 1 = ?' },
  correct_at: 1,
  scored: 1,
  correct: 0,
  mean: 0.5,
  samples: [
    sample,
    {
      ...sample,
      rollout: 'e-1:0:1',
      state: 'failed',
      reward: null,
      stop_reason: null,
      failure: { blame: 'verifier', code: 'evaluate-timeout', message: 'it took too long' },
    },
  ],
};

const trainerStep = {
  run: 'run-7',
  step: 7,
  at,
  policy_version: 8,
  loss: 0.125,
  kl: 0.001,
  entropy: 1.5,
  clip_share: 0.25,
  metrics: { lr: 0.000001 },
  samples: 2,
  unknown_samples: 1,
  mismatch: [{ backend: '10.0.0.1:8000', policy_version: 7, tokens: 1200, mean_abs: 0.031, most_abs: 2.5, kl: 0.0007 }],
  alarm: 'recomputed logprobs are 0.031 nats from the recorded ones on average; it was 0.010 before',
};
const trainerSampleSeen = {
  rollout_id: 'r-1',
  branch: 0,
  run: 'run-7',
  step: 7,
  at,
  policy_version: 8,
  advantage: -0.5,
  advantages: [-0.5, 0.25],
  logprobs: [-0.5, -2],
  kl: [0, 0.125],
};

function makeGroupPage(): Record<string, unknown> & { groups: Record<string, unknown>[] } {
  const group = {
    seq: 3,
    id: 'g-1',
    batch: 'b-1',
    task_index: 5,
    task: { question: '1 + 1 = ?' },
    rewards: [0.5],
    rollouts: [makeRolloutView()],
    trajectories: [toTrajectoryView(makeTrajectory())],
    policy_versions: { first: 3, last: 4 },
    carried: true,
    delivered_at: at,
  };
  return { groups: [group], next: 3, state: 'open' };
}

/** The same page with its trajectories in the binary format. */
export function makeBinaryGroups(): Buffer {
  const { groups, ...rest } = makeGroupPage();
  const page = groupPage.parse({ ...rest, groups: groups.map(({ trajectories: _, ...group }) => group) });
  return Buffer.concat([toGroupsStart(page), ...toGroupsPart(toBinary(makeTrajectory()))]);
}

export function makeGolden(): Readonly<Record<string, Golden>> {
  const rollout = makeRolloutView();
  const failed = { ...rollout, id: 'r-3', state: 'failed', reward: null, failure: { ...rollout.failures[0], code: 'worker-lost' } };
  const fresh = {
    ...rollout,
    id: 'r-2',
    state: 'queued',
    waiting: 'no live machine has gpu=a100 (live: node-1)',
    group: null,
    worker: null,
    reward: null,
    result: null,
    ended_at: null,
  };
  return {
    'rollout.json': { schema: rolloutView, value: rollout },
    'failed-rollout.json': { schema: rolloutView, value: failed },
    'waiting-rollout.json': { schema: rolloutView, value: fresh },
    'rollout-list.json': { schema: rolloutList, value: { rollouts: [rollout, failed, { ...fresh, metadata: null }], next: 'r-2' } },
    'trajectory.json': { schema: trajectoryView, value: toTrajectoryView(makeTrajectory()) },
    'branched-trajectory.json': { schema: trajectoryView, value: toTrajectoryView(makeBranchedTrajectory()) },
    'textless-trajectory.json': { schema: trajectoryView, value: toTrajectoryView(dropText(makeTrajectory())) },
    'submit-reply.json': { schema: submitReply, value: { rollouts: [{ id: 'r-1', state: 'queued', created: true }] } },
    'fork-reply.json': { schema: forkReply, value: { rollouts: [{ id: 'r-1.1', state: 'queued', created: true }], turn: 4 } },
    'saved-turns.json': {
      schema: savedTurnList,
      value: {
        turns: [
          { turn: 1, attempt: 0, kept: false, checkpoint: null, rollout: 'r-0' },
          { turn: 2, attempt: 1, kept: true, checkpoint: 'c-1', rollout: 'r-1' },
        ],
      },
    },
    'cancel-reply.json': { schema: cancelReply, value: { id: 'r-1', cancel: 'asked' } },
    'backend-list.json': {
      schema: backendList,
      value: { backends: [backend, { ...backend, id: 'b-2', model: null, health: 'ok', last_error: null }] },
    },
    'batch-list.json': {
      schema: batchList,
      value: {
        batches: [
          batch,
          { ...batch, id: 'b-2', paused: { reason: 'sandbox-died: it died', failed_at: at }, waiting: 'this server has no task file' },
        ],
        next: 'b-1',
      },
    },
    'group-page.json': { schema: groupPage, value: makeGroupPage() },
    'ack-reply.json': { schema: ackReply, value: { consumer: 'trainer', through: 3 } },
    'evaluation-list.json': { schema: evaluationList, value: { evaluations: [evaluation, newEvaluation], next: '2' } },
    'evaluation-tasks.json': { schema: evaluationTaskPage, value: { tasks: [evaluationTask], next: 1 } },
    'policy.json': {
      schema: policyView,
      value: { state: 'pausing', mode: 'wait', owner: 'trainer-1', policy_version: 4, adapter: 'step-4', generating: 2, since: at },
    },
    'trainer-steps.json': {
      schema: trainerStepList,
      value: { steps: [trainerStep], next: 7, runs: [{ run: 'run-7', steps: 8, newest_at: at }] },
    },
    'trainer-samples.json': { schema: trainerSampleList, value: { samples: [trainerSampleSeen] } },
    'leave-reply.json': { schema: leaveReply, value: { id: 'b-2' } },
    'status.json': {
      schema: serviceStatus,
      value: {
        rollouts,
        workers,
        machines: [machineSeen],
        backends: [backend],
        policy: { state: 'paused', mode: 'abort', owner: null, policy_version: 4, adapter: null, generating: 0, since: at },
        batches: [openBatch, { ...openBatch, id: 'b-2', series: null, mean_reward: null }],
        recent: { seconds: 60, ended: 12, failed: 2, rewarded: 8, mean_reward: 0.375 },
        hints: ['no backend takes rollouts: 10.0.0.1:8000 is broken (connection refused)'],
        tokens_per_s: 61.5,
        last_event_id: 99,
        store: {
          file_bytes: 1_000_000,
          wal_bytes: 4096,
          reusable_bytes: 8192,
          free_bytes: 50_000_000_000,
          full: 'the disk is full; delete something',
        },
        loop_lag_ms: lag,
        rss_bytes: 90_000_000,
        classes: [
          { kind: 'batch', name: 'b-1', weight: 2, priority: 0, urgent: true, queued: 3, active: 8 },
          { kind: 'plain', name: '', weight: 1, priority: -1, urgent: false, queued: 3000, active: 4 },
        ],
      },
    },
    'machine-list.json': { schema: machineList, value: { machines: [machineSeen, { ...machineSeen, name: 'node-2', state: 'lost' }] } },
    'worker-settings.json': {
      schema: workerSettings,
      value: {
        config: { model: { tokenizer: '/models/tiny' } },
        wire: 1,
        local_store: { machine: 'node-1', machine_id: 'm-0123456789abcdef' },
      },
    },
    'event.json': {
      schema: event,
      value: {
        id: 7,
        at,
        kind: 'rollout-end',
        rollout_id: 'r-1',
        group: 'g-1',
        worker_id: 'w-1',
        backend_id: '10.0.0.1:8000',
        data: { state: 'done', reward: 0.5 },
      },
    },
    'error.json': {
      schema: errorBody,
      value: {
        error: {
          code: 'too-busy',
          message: 'the queue is full',
          blame: 'service',
          retryable: true,
          details: { retry_after_ms: 1000 },
        },
      },
    },
  };
}

if (import.meta.main) {
  for (const [name, { value }] of Object.entries(makeGolden()))
    writeFileSync(new URL(`golden/${name}`, import.meta.url), `${JSON.stringify(value, null, 2)}\n`);
  writeFileSync(new URL('golden/trajectory.mrt', import.meta.url), toBinary(makeTrajectory()));
  writeFileSync(new URL('golden/branched-trajectory.mrt', import.meta.url), toBinary(makeBranchedTrajectory()));
  writeFileSync(new URL('golden/group-page.mrg', import.meta.url), makeBinaryGroups());
}
