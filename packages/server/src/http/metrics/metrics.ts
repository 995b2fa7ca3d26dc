// Metrics in the Prometheus format: counters and histograms from the event log, gauges from the status. Of several servers, one reports
// what they all see, and each reports its own process: a sum over all servers counts everything once.

import { type Event, errorCodes, rolloutStates, type ServiceStatus, timings } from '@millrace/protocol';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { z } from 'zod';
import { openBackendMetrics } from './backend-metrics.ts';
import { openStoreMetrics, type StoreMetrics } from './store-metrics.ts';

export interface Metrics {
  readonly store: StoreMetrics;
  push(events: readonly Event[]): void;
  request(labels: { readonly method: string; readonly route: string; readonly status: number }, ms: number): void;
  /** One step of retention. */
  retention(lockMs: number): void;
  render(status: ServiceStatus, options: { readonly isLeader: boolean }): Promise<string>;
  /** Every metric: the server's own, and those that one of several servers reports for all. */
  describe(): readonly MetricDescription[];
}

interface MetricDescription {
  readonly name: string;
  readonly help: string;
  readonly isOwn: boolean;
}

export function openMetrics(): Metrics {
  const [service, own] = [new Registry(), new Registry()];
  const events = openEventMetrics(service);
  const gauges = openGauges(service);
  const backends = openBackendMetrics(service);
  const showOwn = openOwnGauges(own);
  const store = openStoreMetrics(own);
  const requests = new Histogram({
    name: 'millrace_http_request_seconds',
    help: 'Duration of requests; long polls have their own route label, ending in ?wait.',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30],
    registers: [own],
  });
  const retention = new Histogram({
    name: 'millrace_retention_lock_seconds',
    help: "How long each step of retention held the store's write lock.",
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1],
    registers: [own],
  });
  return {
    store,
    push(batch) {
      batch.forEach(events);
      batch.forEach(backends.push);
    },
    describe: () =>
      [service, own].flatMap((registry) => registry.getMetricsAsArray().map(({ name, help }) => ({ name, help, isOwn: registry === own }))),
    retention: (lockMs) => retention.observe(lockMs / 1000),
    request: (labels, ms) => requests.observe(labels, ms / 1000),
    async render(status, { isLeader }) {
      showOwn(status, isLeader);
      if (!isLeader) return await own.metrics();
      gauges(status);
      backends.show(status.backends);
      return (await own.metrics()) + (await service.metrics());
    },
  };
}

/** Lenient: an event that lacks a field is counted without it. */
const endData = z.object({
  state: z.enum(rolloutStates).catch('failed'),
  code: z.enum(errorCodes).optional().catch(undefined),
  blame: z.string().optional().catch(undefined),
  reward: z.number().optional().catch(undefined),
  timings: timings.partial().optional().catch(undefined),
  scenario: z.string().catch(''),
  rejudged: z.object({ same: z.boolean() }).optional().catch(undefined),
});
const turnData = z.object({ sampled_tokens: z.number().catch(0) });

function openEventMetrics(registry: Registry): (event: Event) => void {
  const registers = [registry];
  const ended = new Counter({
    name: 'millrace_rollouts_ended_total',
    help: 'Rollouts that ended.',
    labelNames: ['state', 'blame', 'code'],
    registers,
  });
  const requeued = new Counter({
    name: 'millrace_rollouts_queued_total',
    help: 'Times a rollout entered the queue, by reason.',
    labelNames: ['reason'],
    registers,
  });
  const turns = new Counter({ name: 'millrace_turns_total', help: 'Turns sampled.', registers });
  const tokens = new Counter({ name: 'millrace_sampled_tokens_total', help: 'Tokens sampled.', registers });
  const rewards = new Histogram({
    name: 'millrace_reward',
    help: 'Rewards measured by verifiers.',
    buckets: [-1, -0.5, 0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1],
    registers,
  });
  const stages = new Histogram({
    name: 'millrace_stage_seconds',
    help: 'Time that finished rollouts spent in each stage or wait.',
    labelNames: ['stage'],
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600, 1800],
    registers,
  });
  const rejudged = new Counter({
    name: 'millrace_verdicts_rejudged_total',
    help: 'Rollouts that were judged twice, by whether the second reward was the same.',
    labelNames: ['scenario', 'same'],
    registers,
  });
  const countBatches = openBatchMetrics(registry);
  const showStep = openTrainerMetrics(registry);
  for (const reason of ['submit', 'retry', 'loss', 'release']) requeued.inc({ reason }, 0);

  function countEnd(data: z.infer<typeof endData>): void {
    ended.inc({ state: data.state, blame: data.blame ?? '', code: data.code ?? '' });
    if (data.reward !== undefined) rewards.observe(data.reward);
    if (data.rejudged) rejudged.inc({ scenario: data.scenario, same: String(data.rejudged.same) });
    for (const [name, ms] of Object.entries(data.timings ?? {}))
      if (ms !== undefined) stages.observe({ stage: name.replace(/_ms$/, '') }, ms / 1000);
  }

  return ({ kind, data }) => {
    if (kind === 'rollout-end') countEnd(endData.parse(data));
    else if (kind === 'rollout-queue') requeued.inc({ reason: String(data.reason) });
    else if (kind === 'turn-end') {
      turns.inc();
      tokens.inc(turnData.parse(data).sampled_tokens);
    } else if (kind === 'trainer-step') showStep(stepData.parse(data));
    else countBatches(kind, data);
  };
}

const stepData = z.object({
  run: z.string().catch(''),
  step: z.number().catch(0),
  mean_abs: z.number().optional().catch(undefined),
  alarm: z.string().nullish().catch(undefined),
});

function openTrainerMetrics(registry: Registry): (step: z.infer<typeof stepData>) => void {
  const gauge = (name: string, help: string) =>
    new Gauge({ name: `millrace_trainer_${name}`, help, labelNames: ['run'], registers: [registry] });
  const steps = gauge('step', 'The newest step that a trainer posted.');
  const mismatch = gauge('logprob_mismatch', 'How far recomputed logprobs are from the recorded ones on average, in nats.');
  const alarms = gauge('logprob_alarm', '1 if the mismatch grew or is much larger on one backend, otherwise 0.');
  return ({ run, step, mean_abs, alarm }) => {
    steps.set({ run }, step);
    if (mean_abs === undefined) return;
    mismatch.set({ run }, mean_abs);
    alarms.set({ run }, alarm ? 1 : 0);
  };
}

const wasteData = z.object({ rollouts: z.number(), tokens: z.number(), seconds: z.number() });
const batchEndData = z.object({ state: z.string().catch(''), wasted: z.record(z.string(), wasteData).catch({}) });

function openBatchMetrics(registry: Registry): (kind: Event['kind'], data: Event['data']) => void {
  const counter = (name: string, help: string, ...labelNames: string[]) =>
    new Counter({ name: `millrace_${name}_total`, help, labelNames, registers: [registry] });
  const batches = counter('batches_ended', 'Batches that ended.', 'state');
  const begun = counter('groups_begun', 'Groups started or carried over.');
  const groups = counter('groups_ended', 'Groups that ended.', 'state');
  const skipped = counter('tasks_skipped', 'Lines of task files that the scenario rejected.');
  const tokens = counter('wasted_tokens', 'Tokens sampled but not delivered, counted at the end of each batch.', 'reason');
  const seconds = counter('wasted_seconds', 'Stage seconds spent but not delivered, counted at the end of each batch.', 'reason');
  return (kind, data) => {
    if (kind === 'group-begin') begun.inc();
    else if (kind === 'group-end') groups.inc({ state: String(data.state) });
    else if (kind === 'task-skip') skipped.inc();
    else if (kind === 'batch-end') {
      const { state, wasted } = batchEndData.parse(data);
      batches.inc({ state });
      for (const [reason, one] of Object.entries(wasted)) {
        tokens.inc({ reason }, one.tokens);
        seconds.inc({ reason }, one.seconds);
      }
    }
  };
}

function openGauges(registry: Registry): (status: ServiceStatus) => void {
  const gauge = (name: string, help: string, ...labelNames: string[]) =>
    new Gauge({ name: `millrace_${name}`, help, labelNames, registers: [registry] });
  const rollouts = gauge('rollouts', 'Rollouts by state.', 'state');
  const workers = gauge('workers', 'Workers by whether their lease is valid.', 'alive');
  const machines = gauge(
    'machines',
    'Machines with live workers, by the version of Millrace; during an upgrade, one may count for two.',
    'version',
  );
  const stages = gauge('stage_rollouts', 'Active and waiting rollouts in each stage, over all live workers.', 'stage', 'what');
  const store = gauge(
    'store_bytes',
    "Bytes of the store's file, of its write-ahead log, reusable inside the file, and free on its disk.",
    'what',
  );
  const full = gauge('store_full', '1 while the store is full: submissions are refused with 507, and queued rollouts wait.');
  return (status) => {
    const alive = status.workers.filter((worker) => worker.alive);
    for (const [state, count] of Object.entries(status.rollouts)) rollouts.set({ state }, count);
    machines.reset();
    for (const { versions, state } of status.machines ?? [])
      if (state === 'live' || state === 'draining') for (const version of versions) machines.inc({ version });
    workers.set({ alive: 'true' }, alive.length);
    workers.set({ alive: 'false' }, status.workers.length - alive.length);
    stages.reset();
    for (const { report } of alive) {
      for (const [stage, { active, waiting }] of Object.entries(report?.stages ?? {})) {
        stages.inc({ stage, what: 'active' }, active);
        stages.inc({ stage, what: 'waiting' }, waiting);
      }
    }
    store.set({ what: 'file' }, status.store?.file_bytes ?? 0);
    store.set({ what: 'wal' }, status.store?.wal_bytes ?? 0);
    store.set({ what: 'reusable' }, status.store?.reusable_bytes ?? 0);
    store.set({ what: 'free' }, status.store?.free_bytes ?? 0);
    full.set(status.store?.full == null ? 0 : 1);
  };
}

function openOwnGauges(registry: Registry): (status: ServiceStatus, isLeader: boolean) => void {
  const registers = [registry];
  const lag = new Gauge({ name: 'millrace_loop_lag_seconds', help: 'Event loop lag of the server.', labelNames: ['quantile'], registers });
  const memory = new Gauge({ name: 'millrace_resident_bytes', help: 'Resident memory of the server.', registers });
  const leads = new Gauge({
    name: 'millrace_server_leads',
    help: '1 on the server that reports the metrics of the whole service; the others report only their own process.',
    registers,
  });
  return (status, isLeader) => {
    for (const [quantile, ms] of Object.entries(status.loop_lag_ms)) lag.set({ quantile }, ms / 1000);
    memory.set(status.rss_bytes);
    leads.set(Number(isLeader));
  };
}
