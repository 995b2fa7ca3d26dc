// Frames of the live view at several sizes, the line without a terminal, and the rates that both show.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { event, type ServiceStatus, serviceStatus } from '@millrace/protocol';
import type { z } from 'zod';
import { FakeService } from '../../../client/test/fake-service.ts';
import { toPlain, width } from '../../src/terminal/text.ts';
import { renderWatchLine } from '../../src/watch/watch-line.ts';
import { openWatchRecord, type WatchModel } from '../../src/watch/watch-model.ts';
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
    tokens_per_s: 500,
    loop_lag_ms: { p50: 0.4, p99: 12.3, max: 40 },
    rss_bytes: 180 << 20,
  };
  return { id, host: 'node-1', pid: 4242, started_at: '2026-01-01T00:00:00Z', alive: id !== 'w-gone', report };
}

const dateMs = Date.parse('2026-01-01T12:35:00Z');

type StatusInput = z.input<typeof serviceStatus>;

function makeStatus(turns = 100, more: Partial<StatusInput> = {}): ServiceStatus {
  const backend = {
    id: 'b1',
    url: 'http://127.0.0.1:8000',
    dialect: 'vllm',
    model: null,
    policy_version: 7,
    logprobs_mode: 'unknown',
    state: 'up',
    health: 'ok',
    last_error: null,
    in_flight: 32,
    calls: 20,
    call_progress: { oldest_call_ms: 130_000, last_token_ms: 4000, tokens_per_s: 0.3 },
    held_for_cache: 5,
    tokens: 9,
  } as const;
  const idle = { ...backend, in_flight: 0, calls: 0, call_progress: null, held_for_cache: 0 };
  return serviceStatus.parse({
    rollouts: { queued: 9120, init: 4, ready: 6, run: 32, evaluate: 0, done: 801, failed: 3, cancelled: 0 },
    workers: [makeWorker('w-gone', 5), makeWorker('w-1', turns), makeWorker('w-2', turns)],
    backends: [
      backend,
      { ...idle, id: 'b2', state: 'draining' },
      { ...idle, id: 'b3', health: 'broken', last_error: { message: 'connect ECONNREFUSED', at: '2026-01-01T12:34:48Z' } },
    ],
    policy: running,
    batches: [],
    recent: { seconds: 60, ended: 120, failed: 3, rewarded: 117, mean_reward: 0.5 },
    hints: [],
    tokens_per_s: 1000,
    last_event_id: 1,
    loop_lag_ms: { p50: 0.1, p99: 1.25, max: 9 },
    rss_bytes: 85 << 20,
    ...more,
  } satisfies StatusInput);
}

const running = { state: 'running', mode: null, policy_version: 7, generating: 0, since: '2026-01-01T00:00:00Z' } as const;
const batch = {
  id: 'step-1',
  series: null,
  scenario: 'math',
  target: 32,
  delivered: 16,
  open_groups: 20,
  mean_reward: 0.43,
  created_at: '2026-01-01T12:00:00Z',
};
const ended = { at: '2026-01-01T12:34:56.789Z', kind: 'rollout-end', rollout_id: 'r-1' };

function makeRecord() {
  const record = openWatchRecord('http://127.0.0.1:8007', 0);
  record.addStatus(makeStatus(100), 0);
  record.addStatus(makeStatus(150), 5000);
  record.addEvent(event.parse({ ...ended, id: 1, data: { state: 'failed', blame: 'sandbox', code: 'sandbox-died', reward: null } }));
  for (let id = 2; id <= 21; id++) record.addEvent(event.parse({ ...ended, id, data: { state: 'done', reward: 0.5 } }));
  const traffic = { at: ended.at, kind: 'backend-traffic', backend_id: 'b1', data: { sampled_tokens: 4500 } };
  record.addEvent(event.parse({ ...traffic, id: 22 }));
  return record;
}

function render(model: WatchModel, columns = 100, rows = 60): string {
  return renderWatch(model, { columns, rows, color: false, dateMs }).join('\n');
}

function renderStatus(more: Partial<StatusInput>): string {
  const record = openWatchRecord('http://x', 0);
  record.addStatus(makeStatus(100, more), 0);
  return render(record.read(1));
}

test('a frame shows counts, throughput, rewards, failures, stages, backends, workers and events', () => {
  const frame = render(makeRecord().read(10_000));
  for (const wanted of [
    /^millrace {2}http:\/\/127\.0\.0\.1:8007 +policy 7 running · 2 workers · lag 1\.3 ms · 85 MiB$/m,
    /^Rollouts {4}queued 9,120 {3}running 42 {3}done 801 {3}failed 3 {3}cancelled 0$/m,
    /^Throughput {2}120 rollouts\/min {3}10\.0 turns\/s {3}1,000 tokens\/s {3}20 calls in progress$/m,
    /^Rewards {5}mean 0\.500 {2}of 20$/m,
    /^Failed {6}4\.76% of the last 21: 1 sandbox-died \(sandbox\)$/m,
    /^ {2}init {6}█{20}·{20} {4}4\/8 {3}2 \+ 9,120 queued$/m,
    /^ {2}run {7}█{40} {2}32\/32 {3}10$/m,
    /^ {2}b1 +up +32 +20 +5 +0\.30 +2m 10s +4\.0 s ago +7 {2}http:\/\/127\.0\.0\.1:8…$/m,
    /^ {2}b2 +draining/m,
    /^ {2}w-1 +alive +21 +150 +12 ms +180 MiB +4242 {2}node-1$/m,
    /^ {2}12:34:56 {2}rollout-end {5}r-1 {2}done {2}reward 0\.5$/m,
  ]) {
    assert.match(frame, wanted);
  }
});

test('a broken backend is shown as broken, with its last error and when it was', () => {
  assert.match(render(makeRecord().read(1)), /^ {2}b3 +broken +0 .*\n {4}last error 12\.0 s ago: connect ECONNREFUSED$/m);
});

test('live workers come first, and the others last and dimmed', () => {
  const frame = render(makeRecord().read(1));
  assert.ok(frame.indexOf('w-2') < frame.indexOf('w-gone'));
  const painted = renderWatch(makeRecord().read(1), { columns: 100, rows: 60, color: true, dateMs });
  assert.ok(painted.find((line) => line.includes('w-gone'))?.startsWith('\x1b[2m'));
});

test('a paused policy and the hints of the service stand at the top', () => {
  const hints = ['Sampling is paused since 12:00. Continue it: millrace policy resume'];
  const [first, second] = renderStatus({ policy: { ...running, state: 'paused' }, hints }).split('\n');
  assert.match(first ?? '', /policy 7 paused/);
  assert.equal(second, `! ${hints[0]}`);
});

test('open batches have a progress bar, their mean reward and their open groups', () => {
  assert.match(renderStatus({ batches: [batch] }), /^ {2}step-1 {2}█{15}·{15} +16\/32 +0\.430 +20 {2}math$/m);
  assert.doesNotMatch(renderStatus({ batches: [] }), /Batches/);
});

test('the rate of tokens is that of the service, and unknown while calls run and none is counted', () => {
  assert.match(renderStatus({ tokens_per_s: 1234 }), /1,234 tokens\/s/);
  assert.match(renderStatus({ tokens_per_s: 0 }), / - tokens\/s {3}20 calls in progress/);
  assert.match(renderStatus({ tokens_per_s: 0, backends: [] }), / 0 tokens\/s {3}0 calls in progress/);
});

test('on 80 columns the throughput of a busy service is not cut', () => {
  const record = makeRecord();
  record.addStatus(makeStatus(100_000, { tokens_per_s: 123_456 }), 6000);
  assert.match(render(record.read(10_000), 80), /^Throughput {2}120 rollouts\/min {2}[\d,.]+ turns\/s {2}123,456 tokens\/s {2}20 calls$/m);
});

test('rewards show their trend once there are enough', () => {
  const record = openWatchRecord('http://x', 0);
  record.addStatus(makeStatus(), 0);
  for (let id = 1; id <= 48; id++) record.addEvent(event.parse({ ...ended, id, data: { state: 'done', reward: id / 48 } }));
  assert.match(render(record.read(1)), /^Rewards {5}mean 0\.510 {2}▁▂▂▃▄▄▅▅▆▇▇█ {2}of 48$/m);
});

test('no frame is wider or higher than the terminal', () => {
  const model = makeRecord().read(10_000);
  for (const columns of [40, 60, 80, 100, 120, 200]) {
    for (const rows of [5, 10, 16, 24, 50]) {
      const lines = renderWatch(model, { columns, rows, color: true, dateMs });
      assert.ok(lines.length <= rows, `${lines.length} lines in ${rows}`);
      for (const line of lines) assert.ok(width(line) <= columns, `${columns} columns: ${toPlain(line)}`);
    }
  }
});

test('on 80 by 24 every section has at least its first row', () => {
  const record = makeRecord();
  record.addStatus(makeStatus(150, { batches: [batch], hints: ['Something is in the way.'] }), 6000);
  const frame = render(record.read(7000), 80, 24);
  for (const wanted of [/^! Something/m, /^Throughput/m, /^ {2}run /m, /^ {2}step-1 /m, /^ {2}b1 /m, /^ {2}w-1 /m])
    assert.match(frame, wanted);
});

test('on 80 columns an event shows the start of a long id, and its reward', () => {
  const record = openWatchRecord('http://x', 0);
  record.addStatus(makeStatus(), 0);
  const long = { ...ended, rollout_id: 'r-4b6234fa-1ac5-49ab-9556-7c66dece6191', id: 1, data: { state: 'done', reward: 1 } };
  record.addEvent(event.parse(long));
  assert.match(render(record.read(1), 80), /rollout-end {5}r-4b6234fa-1ac5… {2}done {2}reward 1$/m);
  assert.match(render(record.read(1), 120), /rollout-end {5}r-4b6234fa-1ac5-49ab-9556-7c66dece6191 {2}done {2}reward 1$/m);
});

test('a service without workers and backends says what that means', () => {
  const frame = renderStatus({ workers: [], backends: [] });
  assert.match(frame, /none: rollouts wait in run/);
  assert.match(frame, /none: nothing starts/);
});

test('a worker that starts again counts from zero, never backwards', () => {
  const record = openWatchRecord('http://x', 0);
  record.addStatus(makeStatus(1000), 0);
  record.addStatus(makeStatus(10), 1000);
  assert.equal(record.read(2000).turnsPerSecond, 0);
});

test('trouble is shown until the service answers again', () => {
  const record = makeRecord();
  record.addTrouble('no answer; trying again');
  assert.equal(render(record.read(1), 80, 24).split('\n')[1], '! no answer; trying again');
  record.addStatus(makeStatus(), 2);
  assert.equal(record.read(3).trouble, undefined);
});

test('the line without a terminal has counts, rates, reward, backends, batches and hints', () => {
  const line = renderWatchLine(makeRecord().read(10_000), new Date(dateMs));
  assert.match(
    line,
    /^2026-01-01T12:35:00Z {2}queued 9,120 {2}running 42 {2}done 801 {2}failed 3 {2}120 rollouts\/min {2}1,000 tokens\/s {2}oldest call 2m 10s {2}last token 4\.0 s ago {2}reward 0\.500 {2}backends 1\/3 {2}workers 2 {2}policy 7 running$/,
  );
});

test('--once prints one frame, without colours where there is no terminal', async () => {
  await using service = await FakeService.open();
  service.end('r-1');
  const { code, out } = await millrace(['watch', '--once', '--url', service.url], openIo());
  assert.equal(code, 0);
  assert.match(out, /done 1 [\s\S]*rollout-end {5}r-1 {2}done/);
  assert.equal(toPlain(out), out);
});

test('without a terminal one line is written for each interval, until Ctrl-C', async () => {
  await using service = await FakeService.open();
  const io = openIo();
  const running = millrace(['watch', '--interval', '20ms', '--url', service.url], io);
  while (io.out().split('\n').length < 4) await new Promise((resolve) => setTimeout(resolve, 5));
  io.interrupt();
  const { code, out } = await running;
  assert.equal(code, 0);
  for (const line of out.trimEnd().split('\n')) assert.match(line, /^\d{4}-\d\d-\d\dT[\d:]{8}Z {2}queued 0 {2}running 0 /);
});

test('NO_COLOR gives frames without colours on a terminal', async () => {
  await using service = await FakeService.open();
  const { out } = await millrace(['watch', '--once', '--url', service.url], openIo({ terminal: true, env: { NO_COLOR: '1' } }));
  assert.equal(toPlain(out), out);
  const painted = await millrace(['watch', '--once', '--url', service.url], openIo({ terminal: true }));
  assert.notEqual(toPlain(painted.out), painted.out);
});
