// Workers grouped by machine.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type WorkerReport, workerId } from '@millrace/protocol';
import { type SeenWorker, toMachines } from '../../../src/http/context/machines.ts';

const nowMs = 1_000_000;
const leaseMs = 15_000;

function makeWorker(
  id: string,
  machine: string,
  options: {
    readonly isAlive?: boolean;
    readonly draining?: boolean;
    readonly held?: number;
    readonly version?: string;
    readonly disk?: string;
  } = {},
): SeenWorker {
  const { isAlive = true, draining, held = 2, version = '0.2.0', disk = 'fast' } = options;
  const stage = { active: 0, waiting: 0, slots: 4 };
  const report: WorkerReport = {
    stages: { init: stage, ready: stage, run: stage, evaluate: stage },
    held,
    backends: {},
    turns: 0,
    sampled_tokens: 0,
    loop_lag_ms: { p50: 0, p99: 0, max: 0 },
    rss_bytes: 1,
    lease_ms: leaseMs,
    machine: { id: `m-${machine}`, name: machine, labels: { disk }, cpus: 8, memory_bytes: 1024, version },
    ...(draining !== undefined && { draining }),
  };
  const leaseUntilMs = isAlive ? nowMs + leaseMs - 400 : nowMs - 3000;
  return { worker: { id: workerId.parse(id), host: 'host', pid: 1, startedAtMs: 1, leaseUntilMs, hasEnded: !isAlive, report }, isAlive };
}

test('the workers of a machine are added up, and its heartbeat is that of the last renewal', () => {
  const [machine, ...others] = toMachines([makeWorker('a', 'n1'), makeWorker('b', 'n1')], nowMs);
  assert.deepEqual(others, []);
  assert.deepEqual(machine, {
    id: 'm-n1',
    name: 'n1',
    labels: { disk: 'fast' },
    cpus: 8,
    memory_bytes: 1024,
    versions: ['0.2.0'],
    state: 'live',
    workers: 2,
    held: 4,
    slots: { init: 8, run: 8, evaluate: 8 },
    heartbeat_age_ms: 400,
    started_at: new Date(1).toISOString(),
  });
});

test('a machine is live, draining, left or lost by what its workers last said', () => {
  const gone = { isAlive: false };
  const machines = toMachines(
    [
      makeWorker('a', 'live'),
      makeWorker('b', 'live', gone),
      makeWorker('c', 'draining', { draining: true }),
      makeWorker('d', 'left', { ...gone, draining: true }),
      makeWorker('e', 'lost', { ...gone, draining: true }),
      makeWorker('f', 'lost', gone),
    ],
    nowMs,
  );
  assert.deepEqual(
    machines.map(({ name, state, workers, held }) => [name, state, workers, held]),
    [
      ['live', 'live', 1, 2],
      ['draining', 'draining', 1, 2],
      ['left', 'left', 0, 0],
      ['lost', 'lost', 0, 0],
    ],
  );
});

test('a worker that has reported no machine counts for its host', () => {
  const { worker } = makeWorker('a', 'n1');
  const { report: _, ...silent } = worker;
  assert.deepEqual(
    toMachines([{ worker: silent, isAlive: true }], nowMs).map(({ id, name, cpus }) => [id, name, cpus]),
    [['host:host', 'host', 0]],
  );
});

test('during an upgrade a machine shows both versions, and workers of one host that have other labels are another machine', () => {
  const seen = [
    makeWorker('a', 'n1'),
    makeWorker('b', 'n1', { version: '0.3.0' }),
    makeWorker('c', 'n1', { disk: 'slow' }),
    makeWorker('d', 'n1', { isAlive: false, version: '0.1.0' }),
  ];
  assert.deepEqual(
    toMachines(seen, nowMs).map(({ id, labels, versions, workers }) => [id, labels.disk, versions, workers]),
    [
      ['m-n1', 'fast', ['0.2.0', '0.3.0'], 2],
      ['m-n1', 'slow', ['0.2.0'], 1],
    ],
  );
});
