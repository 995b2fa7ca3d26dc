// Frames of the live view at several sizes, and the rates that they show.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { event, type ServiceStatus, serviceStatus } from '@millrace/protocol';
import { FakeService } from '../../../client/test/fake-service.ts';
import { toPlain, width } from '../../src/terminal/text.ts';
import { openWatchRecord } from '../../src/watch/watch-model.ts';
import { renderWatch } from '../../src/watch/watch-render.ts';
import { millrace, openIo } from '../fake-io.ts';

const stage = (active: number, waiting: number, slots: number) => ({ active, waiting, slots });

function makeWorker(id: string, turns: number) {
  const stages = { init: stage(2, 1, 4), ready: stage(3, 0, 8), run: stage(16, 5, 16), evaluate: stage(0, 0, 4) };
  const report = {
    stages,
    held: 21,
    backends: {},
    turns,
    sampled_tokens: turns * 100,
    loop_lag_ms: { p50: 0.4, p99: 12.3, max: 40 },
    rss_bytes: 180 << 20,
  };
  return { id, host: 'node-1', pid: 4242, started_at: '2026-01-01T00:00:00Z', alive: id !== 'w-gone', report };
}

function makeStatus(turns = 100): ServiceStatus {
  const weights = { model: null, policy_version: 7, logprobs_mode: 'unknown' };
  const backend = {
    id: 'b1',
    url: 'http://127.0.0.1:8000',
    dialect: 'vllm',
    ...weights,
    state: 'up',
    health: 'ok',
    last_error: null,
    in_flight: 32,
    calls: 20,
    tokens: 9,
  };
  return serviceStatus.parse({
    rollouts: { queued: 9120, init: 4, ready: 6, run: 32, evaluate: 0, done: 801, failed: 3, cancelled: 0 },
    workers: [makeWorker('w-1', turns), makeWorker('w-2', turns), makeWorker('w-gone', 5)],
    backends: [backend, { ...backend, id: 'b2', state: 'draining', in_flight: 0 }],
    policy: { state: 'running', mode: null, policy_version: 7, generating: 0, since: '2026-01-01T00:00:00Z' },
    batches: [],
    recent: { seconds: 60, ended: 0, failed: 0, rewarded: 0, mean_reward: null },
    hints: [],
    last_event_id: 1,
    loop_lag_ms: { p50: 0.1, p99: 1.25, max: 9 },
    rss_bytes: 85 << 20,
  });
}

function makeRecord() {
  const record = openWatchRecord('http://127.0.0.1:8007', 0);
  record.addStatus(makeStatus(100), 0);
  record.addStatus(makeStatus(150), 5000);
  const ended = { at: '2026-01-01T12:34:56.789Z', kind: 'rollout-end', rollout_id: 'r-1' };
  record.addEvent(event.parse({ ...ended, id: 1, data: { state: 'failed', blame: 'sandbox', code: 'sandbox-died', reward: null } }), {
    nowMs: 0,
    live: false,
  });
  for (let id = 2; id <= 21; id++)
    record.addEvent(event.parse({ ...ended, id, data: { state: 'done', reward: 0.5 } }), { nowMs: 6000, live: true });
  return record;
}

test('a frame shows states, stages over all live workers, rates, failures, backends, workers and events', () => {
  const frame = renderWatch(makeRecord().read(10_000), { columns: 100, rows: 40, color: false }).join('\n');
  for (const wanted of [
    /^millrace {2}http:\/\/127\.0\.0\.1:8007 +2 workers · lag p99 1\.3 ms · 85 MiB$/m,
    /^Rollouts {3}queued 9,120 {3}init 4 .* failed 3 {3}cancelled 0$/m,
    /^Rates {6}2\.00 ended\/s {3}10\.0 turns\/s {3}1,000 tokens\/s$/m,
    /^Failures {3}sandbox 1$/m,
    /^ {2}init {5}█{20}·{20} {4}4\/8 {3}2 waiting$/m,
    /^ {2}run {6}█{40} {2}32\/32 {3}10 waiting$/m,
    /^ {2}b1 +up +32 +7 {3}http:\/\/127\.0\.0\.1:8000$/m,
    /^ {2}b2 +draining/m,
    /^ {2}w-1 +4242 +alive +21 +12 ms +180 MiB +node-1$/m,
    /^ {2}w-gone +4242 +gone/m,
    /^ {2}12:34:56 {2}rollout-end {5}r-1 {2}done {2}reward 0\.5$/m,
  ]) {
    assert.match(frame, wanted);
  }
});

test('no frame is wider or higher than the terminal', () => {
  const model = makeRecord().read(10_000);
  for (const columns of [40, 60, 80, 100, 200]) {
    for (const rows of [5, 10, 16, 24, 50]) {
      const lines = renderWatch(model, { columns, rows, color: true });
      assert.ok(lines.length <= rows, `${lines.length} lines in ${rows}`);
      for (const line of lines) assert.ok(width(line) <= columns, `${columns} columns: ${toPlain(line)}`);
    }
  }
});

test('a service without workers and backends says what that means', () => {
  const record = openWatchRecord('http://x', 0);
  record.addStatus({ ...makeStatus(), workers: [], backends: [] }, 0);
  const frame = renderWatch(record.read(1), { columns: 80, rows: 40, color: false }).join('\n');
  assert.match(frame, /none has joined: rollouts wait/);
  assert.match(frame, /none: nothing will be taken up/);
});

test('a worker that starts again counts from nothing, never backwards', () => {
  const record = openWatchRecord('http://x', 0);
  record.addStatus(makeStatus(1000), 0);
  record.addStatus(makeStatus(10), 1000);
  assert.equal(record.read(2000).rates.turns, 0);
});

test('trouble is shown until the service answers again', () => {
  const record = makeRecord();
  record.addTrouble('trying again: no answer');
  assert.match(renderWatch(record.read(1), { columns: 80, rows: 24, color: false })[1] ?? '', /^trying again: no answer$/);
  record.addStatus(makeStatus(), 2);
  assert.equal(record.read(3).trouble, undefined);
});

test('without a terminal one frame is printed, without colours', async () => {
  await using service = await FakeService.open();
  service.end('r-1');
  const { code, out } = await millrace(['watch', '--url', service.url], openIo());
  assert.equal(code, 0);
  assert.match(out, /done 1 [\s\S]*rollout-end {5}r-1 {2}done/);
  assert.equal(toPlain(out), out);
});
