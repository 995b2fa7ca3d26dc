// Backends, status, readiness and metrics.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { backendId, type CallProgressReport, serviceStatus, workerId } from '@millrace/protocol';
import { FakeClock, makeBatch, makeReport } from '@millrace/testkit';
import { limitFileSize } from '../../../../store/test/sqlite/bed.ts';
import { errorOf, makeFailure, makeResult, openFloor, shareFloor, task } from '../floor.ts';

const sharedFloor = shareFloor();

const url = 'http://10.0.0.1:8000';

test('a backend joins, is listed without its key, drains and leaves', async () => {
  const floor = sharedFloor();
  await floor.worker.report({ calls: { '10.0.0.1:8000': 3 }, held_for_cache: { '10.0.0.1:8000': 2 } });
  const joined = await floor.call('POST', '/v1/backends', { url: `${url}/`, api_key: 'secret', policy_version: 4 });
  const known = { id: '10.0.0.1:8000', url, dialect: 'vllm', model: null, policy_version: 4, logprobs_mode: 'unknown' };
  const route = { probe: null, generation: 1, route: '/inference/v1/generate', route_reason: null, note: null };
  const logprobs_reason =
    'it is not known yet: its server has not answered yet. It is asked again; or give logprobs_mode when the backend joins';
  const view = {
    ...known,
    logprobs_reason,
    ...route,
    state: 'up',
    health: 'ok',
    broken_for: [],
    last_error: null,
    in_flight: 0,
    calls: 3,
    call_progress: null,
    held_for_cache: 2,
    tokens: 0,
  };
  assert.deepEqual(joined.body, view);
  assert.deepEqual((await floor.call('GET', '/v1/backends')).body, { backends: [view] });
  assert.equal((await floor.call('POST', `/v1/backends/${view.id}/drain`)).body.state, 'draining');
  assert.deepEqual((await floor.call('DELETE', `/v1/backends/${view.id}`)).body, { id: view.id });
  for (const [method, path] of [
    ['DELETE', view.id],
    ['POST', `${view.id}/drain`],
  ] as const) {
    assert.equal(errorOf(await floor.call(method, `/v1/backends/${path}`)).code, 'not-found');
  }
});

test('a backend whose calls fell back shows its route and why', async () => {
  await using floor = await openFloor();
  await floor.call('POST', '/v1/backends', { id: 'b', url });
  await floor.store.noteProbe(backendId.parse('b'), { route: '/v1/completions', routeReason: '403' });
  const [view] = (await floor.call('GET', '/v1/backends')).body.backends;
  assert.deepEqual([view.route, view.route_reason], ['/v1/completions', '403']);
});

test('what the server says about itself when it joins is shown', async () => {
  const common = { engine: 'vllm', version: '0.32.0', model: 'm', tokenizer: 'same' } as const;
  const found = { ...common, contextTokens: 2048, logprobsMode: 'raw', atMs: Date.parse('2026-01-02T03:04:05Z') } as const;
  await using floor = await openFloor({ probe: async () => found });
  const { body } = await floor.call('POST', '/v1/backends', { url, logprobs_mode: 'processed' });
  const probe = { ...common, context_length: 2048, tokenizer_reason: null, several: false, at: '2026-01-02T03:04:05.000Z' };
  assert.deepEqual(body.probe, probe);
  const reason = 'its server returns raw logprobs, not processed as given when it joined';
  assert.deepEqual([body.health, body.logprobs_mode, body.logprobs_reason], ['ok', 'raw', reason]);
  assert.deepEqual((await floor.call('GET', '/v1/backends')).body.backends[0].probe, probe);
});

test('a backend that joins as …/v1 gets its base address, and the reply says so', async () => {
  await using floor = await openFloor();
  for (const address of [`${url}/v1`, `${url}/v1/`]) {
    const { body } = await floor.call('POST', '/v1/backends', { url: address });
    assert.deepEqual([body.id, body.url], ['10.0.0.1:8000', url]);
    assert.match(body.note, /without \/v1/);
  }
  assert.equal((await floor.call('GET', '/v1/backends')).body.backends[0].note, null);
});

test('a backend with another model than those that are up joins, and the reply says that rollouts are placed on both', async () => {
  const models = ['small', 'small', 'large', 'large'];
  await using floor = await openFloor({ probe: async () => ({ model: models.shift() ?? '', atMs: 1 }) });
  const join = async (host: string) => (await floor.call('POST', '/v1/backends', { url: `http://${host}:8000`, id: host })).body;
  assert.equal((await join('a')).note, null);
  assert.equal((await join('b')).note, null);
  assert.match((await join('c')).note, /serves large and a serves small: rollouts are placed on both, so use a service for each model/);
  for (const id of ['a', 'b', 'c']) await floor.call('DELETE', `/v1/backends/${id}`);
  assert.equal((await join('d')).note, null);
});

test('a backend that does not answer joins as broken, with the error', async () => {
  await using floor = await openFloor({ probe: () => Promise.reject(new Error('connect ECONNREFUSED')) });
  const { status, body } = await floor.call('POST', '/v1/backends', { url });
  assert.deepEqual([status, body.state, body.health, body.last_error.message], [200, 'up', 'broken', 'connect ECONNREFUSED']);
});

test('a backend with another tokenizer joins as broken, with the text and the ids, and its facts are shown', async () => {
  const tokenizerReason = 'its tokenizer is not the service\'s: it encodes "a" as [1], and the service as [2]';
  const found = { engine: 'vllm', version: '0.32.0', tokenizer: 'different', tokenizerReason, atMs: 1 } as const;
  await using floor = await openFloor({ probe: async () => found });
  const { body } = await floor.call('POST', '/v1/backends', { url });
  assert.deepEqual([body.health, body.last_error.message], ['broken', tokenizerReason]);
  assert.deepEqual([body.probe.version, body.probe.tokenizer, body.probe.tokenizer_reason], ['0.32.0', 'different', tokenizerReason]);
});

test('two addresses never share an id, and an invalid address is refused', async () => {
  const floor = sharedFloor();
  const id = async (address: string) => (await floor.call('POST', '/v1/backends', { url: address })).body.id;
  const addresses = [
    url,
    'https://10.0.0.1:8000',
    `${url}/a`,
    `${url}/b`,
    'http://[::1]:8000',
    'http://[::2]:8000',
    `http://${'x'.repeat(200)}.org`,
  ];
  assert.equal(new Set(await Promise.all(addresses.map(id))).size, addresses.length);
  for (const bad of ['ftp://x', 'nonsense', '', 7])
    assert.match(errorOf(await floor.call('POST', '/v1/backends', { url: bad })).message, /^url: /);
});

test('the status shows how the calls on a backend get on over all workers, and says if no token comes', async () => {
  await using floor = await openFloor({ clock: new FakeClock() });
  await floor.call('POST', '/v1/backends', { url });
  const report = (id: string, call_progress: CallProgressReport) =>
    floor.store.registerWorker({ id: workerId.parse(id), host: 'here', pid: 1 }, { leaseMs: 60_000 }).then(() =>
      floor.store.renew(workerId.parse(id), {
        leaseMs: 60_000,
        report: { ...makeReport(0), call_progress: { '10.0.0.1:8000': call_progress } },
      }),
    );
  await report('w-1', { oldest_call_ms: 70_000, last_token_ms: null, tokens_per_s: 0 });
  await report('w-2', { oldest_call_ms: 90_000, last_token_ms: 65_000, tokens_per_s: 0.5 });
  const { backends, hints } = serviceStatus.parse((await floor.call('GET', '/v1/status')).body);
  assert.deepEqual(backends[0]?.call_progress, { oldest_call_ms: 90_000, last_token_ms: 65_000, tokens_per_s: 0.5 });
  assert.match(hints.join(), /10\.0\.0\.1:8000 has sent no token for more than a minute/);
});

test('readiness reports what is missing', async () => {
  await using floor = await openFloor();
  const before = await floor.call('GET', '/readyz');
  assert.equal(before.status, 503);
  assert.deepEqual(errorOf(before).details?.missing, ['no live worker']);
  await floor.worker.register();
  assert.equal((await floor.call('GET', '/readyz')).status, 200);
});

test('all that ask for readiness at the same time cost the store one write', async () => {
  await using floor = await openFloor();
  await floor.worker.register();
  let checks = 0;
  const { checkHealth } = floor.store;
  floor.store.checkHealth = async () => {
    checks += 1;
    return await checkHealth.call(floor.store);
  };
  const replies = await Promise.all(Array.from({ length: 20 }, () => floor.call('GET', '/readyz')));
  assert.deepEqual([...new Set(replies.map(({ status }) => status)), checks], [200, 1]);
});

test('a store that cannot be written is not ready; callers get no path, and the log has it', async () => {
  const logged: string[] = [];
  const log = { ...silentLog, error: (event: string, fields?: object) => logged.push(`${event} ${JSON.stringify(fields)}`) };
  await using floor = await openFloor({ log });
  await floor.worker.register();
  limitFileSize('4096');
  try {
    const ready = await floor.call('GET', '/readyz');
    assert.equal(ready.status, 503);
    assert.deepEqual(errorOf(ready).details?.missing, ['the store failed: EIO, SQLITE_IOERR']);
    const refused = await floor.call('POST', '/v1/rollouts', { rollouts: [{ scenario: 'sums', task }] });
    assert.equal(refused.status, 500);
    assert.match(errorOf(refused).message, /^the store failed: EIO, SQLITE_IOERR \(request_id /);
  } finally {
    limitFileSize('unlimited');
  }
  assert.match(logged.join('\n'), /store-check-failed .*store\.sqlite: EIO.*\nrequest-store-failed .*store\.sqlite: EIO/s);
  assert.equal((await floor.call('GET', '/readyz')).status, 200);
});

test('the metrics show the size of the store and what is free on its disk', async () => {
  await using floor = await openFloor();
  const metrics = String((await floor.call('GET', '/metrics')).body);
  for (const what of ['file', 'wal', 'free']) assert.match(metrics, new RegExp(`millrace_store_bytes\\{what="${what}"\\} [1-9]`));
});

test('status and metrics read the store at most once a second, however many requests there are', async () => {
  let counts = 0;
  await using floor = await openFloor({
    wrap: (store) =>
      new Proxy(store, {
        get(target, name) {
          if (name === 'counts') counts += 1;
          return Reflect.get(target, name);
        },
      }),
  });
  const start = performance.now();
  await Promise.all(Array.from({ length: 200 }, (_, index) => floor.call('GET', ['/v1/status', '/metrics'][index % 2] ?? '')));
  assert.ok(counts <= 1 + (performance.now() - start) / 1000, `${counts} reads`);
});

test('the status shows the policy, open batches, recent rewards, and gone workers after live ones', async () => {
  const clock = new FakeClock();
  await using floor = await openFloor({ clock });
  const register = (id: string) => floor.store.registerWorker({ id: workerId.parse(id), host: 'h', pid: 1 }, { leaseMs: 60_000 });
  await register('w-gone');
  clock.advance(60_000);
  await floor.store.expire({ leaseMs: 60_000, maxLosses: 3 });
  await floor.worker.register();
  await floor.store.pausePolicy({ mode: 'abort' });
  await floor.store.createBatch(makeBatch('b', { target: 3, count: 0, closed: false, series: 's' }));
  await floor.worker.succeed(await floor.submit(), 0.25);
  const read = async () => {
    clock.advance(1000);
    return serviceStatus.parse((await floor.call('GET', '/v1/status')).body);
  };
  let status = await read();
  while (status.recent.ended === 0) status = await read();
  assert.deepEqual(
    status.workers.map(({ id, alive }) => [id, alive]),
    [
      ['w-1', true],
      ['w-gone', false],
    ],
  );
  assert.deepEqual([status.policy.state, status.policy.mode, status.policy.policy_version], ['pausing', 'abort', 0]);
  const { created_at: _, ...batch } = status.batches[0] ?? assert.fail('no batch');
  assert.deepEqual(batch, { id: 'b', series: 's', scenario: 'math', target: 3, delivered: 0, open_groups: 0, mean_reward: null });
  const { ended, rewarded, mean_reward } = status.recent;
  assert.deepEqual([ended, rewarded, mean_reward], [1, 1, 0.25]);
});

test('hints say what is missing and what to do', async () => {
  const clock = new FakeClock();
  await using floor = await openFloor({ clock });
  const hints = async () => {
    clock.advance(1000);
    return (await floor.call('GET', '/v1/status')).body.hints;
  };
  assert.deepEqual(await hints(), [
    'no worker is running: start one with `millrace worker`',
    'no backend has joined: add one with `millrace backend add URL`',
  ]);
  await floor.worker.register();
  await floor.call('POST', '/v1/backends', { id: 'b', url, policy_version: 1 });
  assert.deepEqual(await hints(), []);
  await floor.store.createBatch(makeBatch('ahead', { for_version: 5, max_staleness: 1 }));
  await floor.store.createBatch(makeBatch('empty', { count: 0, closed: false }));
  assert.deepEqual(await hints(), [
    'batch ahead waits for policy version 4: the current version is 1',
    'batch empty has no tasks: append tasks, or close it',
  ]);
  for (const id of ['ahead', 'empty']) await floor.call('DELETE', `/v1/batches/${id}`);
  await floor.store.breakBackend(backendId.parse('b'), { error: 'connection refused' });
  await floor.store.pausePolicy({ mode: 'wait' });
  await floor.store.reportGate(floor.worker.id, { pause: 1, generating: 0 });
  assert.deepEqual(await hints(), [
    'no backend takes rollouts: b is broken (connection refused)',
    'the policy is paused: resume it with `millrace policy resume`',
  ]);
});

test('metrics count ends, retries, turns, tokens, rewards and stages from the event log', async () => {
  await using floor = await openFloor();
  await floor.worker.register();
  const good = await floor.submit();
  const bad = await floor.submit();
  await floor.worker.succeed(good, 0.5);
  await floor.store.retry(await floor.worker.claim(), makeFailure(), { delayMs: 0 });
  await floor.store.appendEvents([
    { kind: 'turn-end', data: { sampled_tokens: 12 } },
    { kind: 'turn-end', data: { sampled_tokens: 30 } },
  ]);
  await floor.worker.finish(await floor.worker.claim(), { state: 'failed', failure: makeFailure(), result: makeResult({ reward: null }) });
  for (const id of [good, bad]) await floor.call('GET', `/v1/rollouts/${id}?wait=30`);
  // The end may be in the store, and in the response, before the tail has passed it to the metrics.
  let body = '';
  while (!body.includes('millrace_rollouts_ended_total{state="failed"')) ({ body } = await floor.call('GET', '/metrics'));
  for (const line of [
    'millrace_rollouts_ended_total{state="done",blame="",code=""} 1',
    'millrace_rollouts_ended_total{state="failed",blame="sandbox",code="sandbox-died"} 1',
    'millrace_rollouts_queued_total{reason="retry"} 1',
    'millrace_rollouts_queued_total{reason="loss"} 0',
    'millrace_turns_total 2',
    'millrace_sampled_tokens_total 42',
    'millrace_reward_bucket{le="0.4"} 0',
    'millrace_reward_bucket{le="0.5"} 1',
    'millrace_reward_count 1',
    'millrace_stage_seconds_sum{stage="evaluate"} 6',
    'millrace_stage_seconds_count{stage="queued"} 2',
    'millrace_rollouts{state="done"} 1',
    'millrace_workers{alive="true"} 1',
    'millrace_loop_lag_seconds{quantile="p99"} 0.001',
  ])
    assert.ok(body.includes(`${line}\n`), line);
  assert.match(body, /millrace_http_request_seconds_count\{method="GET",route="\/v1\/rollouts\/:id\?wait",status="200"\} 2/);
});

test('metrics and the list show for each backend what runs on it, its calls, and whether it is broken', async () => {
  await using floor = await openFloor();
  await floor.worker.register();
  const { id: backendId } = (await floor.call('POST', '/v1/backends', { id: 'b', url })).body;
  await floor.submit();
  const claim = await floor.worker.claim();
  for (const to of ['ready', 'run'] as const) await floor.store.move(claim, to);
  assert.equal(await floor.store.place(claim, { tokens: 500 }), backendId);
  const cache = { cached_tokens: 800, expected_tokens: 850, recomputed_tokens: 50, cache_wait_ms: 1500 };
  const counts = { calls: 9, retries: 2, prompt_tokens: 1000, ...cache, sampled_tokens: 70, model_ms: 2500 };
  await floor.store.appendEvents([
    { kind: 'backend-traffic', backendId, data: { ...counts, errors: { busy: 1, 'backend-failed': 2 } } },
    { kind: 'backend-traffic', backendId, data: { calls: 'nonsense' } },
  ]);
  await floor.store.breakBackend(backendId, { error: 'connection refused' });
  const [view] = (await floor.call('GET', '/v1/backends')).body.backends;
  assert.deepEqual([view.health, view.last_error.message, view.in_flight, view.tokens], ['broken', 'connection refused', 1, 500]);
  let body = '';
  while (!body.includes('millrace_backend_breaks_total{backend="b"} 1')) ({ body } = await floor.call('GET', '/metrics'));
  for (const line of ['calls_total{backend="b"} 9', 'retries_total{backend="b"} 2', 'prompt_tokens_total{backend="b"} 1000'])
    assert.ok(body.includes(`millrace_backend_${line}\n`), line);
  for (const line of [
    'cached_tokens_total{backend="b"} 800',
    'expected_tokens_total{backend="b"} 850',
    'recomputed_tokens_total{backend="b"} 50',
    'cache_wait_seconds_total{backend="b"} 1.5',
    'held_for_cache{backend="b"} 0',
    'sampled_tokens_total{backend="b"} 70',
    'call_seconds_total{backend="b"} 2.5',
  ])
    assert.ok(body.includes(`millrace_backend_${line}\n`), line);
  for (const line of ['errors_total{backend="b",code="busy"} 1', 'errors_total{backend="b",code="backend-failed"} 2'])
    assert.ok(body.includes(`millrace_backend_${line}\n`), line);
});
