// ProRL Agent's routes as its clients use them.

import assert from 'node:assert/strict';
import { request } from 'node:http';
import { test } from 'node:test';
import { processReply } from '@millrace/protocol';
import { errorOf, type Floor, makeFailure, makeResult, makeTrajectory, openFloor, readEvents, shareFloor, task } from '../floor.ts';

const instance = {
  data_source: 'deepscaler',
  instance_id: 'aime-1',
  trajectory_id: 3,
  data_kind: 'x',
  extra_info: { split: 'train' },
  ...task,
};
const sampling_params = {
  model: 'Qwen/Qwen3-4B',
  api_key: null,
  temperature: 0.6,
  top_p: 0.9,
  seed: null,
  max_output_tokens: 512,
  max_iterations: 7,
  native_tool_calling: true,
  custom_tokenizer: 'x',
};

const sharedFloor = shareFloor();

/** A floor whose ProRL server is started; tests that share it use their own instances. */
async function started(): Promise<Floor> {
  await sharedFloor().call('POST', '/start');
  await sharedFloor().call('POST', '/add_llm_server', { address: '10.0.0.1:8000' });
  return sharedFloor();
}

/** Resolves once /process has queued its rollout. */
async function queued(floor: Floor): Promise<void> {
  while ((await floor.store.counts()).queued === 0) {
    await new Promise<void>((resolve) => {
      const stop = floor.store.onHint(() => {
        stop();
        resolve();
      });
    });
  }
}

async function claimNext(floor: Floor) {
  await queued(floor);
  return floor.worker.claim();
}

test('start, stop and status behave like the original, with its messages and status codes', async () => {
  await using floor = await openFloor();
  for (const [method, url] of [
    ['POST', '/stop'],
    ['GET', '/status'],
  ] as const) {
    const reply = await floor.call(method, url);
    assert.equal(reply.status, 503);
    assert.equal(reply.body.detail, 'Server is not running. Please start the server first.');
  }
  assert.equal((await floor.call('POST', '/process', { instance, sampling_params })).status, 503);
  assert.deepEqual((await floor.call('POST', '/start')).body, { status: 'Server started successfully' });
  const twice = await floor.call('POST', '/start');
  assert.deepEqual([twice.status, twice.body.detail], [400, 'Server is already running']);
  assert.deepEqual((await floor.call('GET', '/status')).body, {
    status: 'running',
    running: true,
    pending_jobs: 0,
    init_queue: 0,
    run_queue: 0,
    eval_queue: 0,
    active_init: 0,
    active_run: 0,
    active_eval: 0,
    total: 0,
    jobs: 0,
    init: 0,
    run: 0,
    eval: 0,
  });
  assert.match((await floor.call('POST', '/stop')).body.status, /stopped/);
  assert.equal((await floor.call('POST', '/start')).status, 200);
});

test('process blocks until the end and returns the fields of the original plus the reward', async () => {
  const floor = await started();
  const answer = floor.call('POST', '/process', { instance, sampling_params });
  const claimed = await claimNext(floor);
  assert.equal(claimed.id, 'aime-1-3');
  assert.deepEqual(claimed.submission.task, task);
  const { sampling, limits } = claimed.submission;
  assert.deepEqual(
    [sampling.temperature, sampling.top_p, sampling.max_tokens, sampling.seed, limits.max_turns],
    [0.6, 0.9, 512, undefined, 7],
  );
  await floor.worker.finish(claimed, { state: 'done', result: makeResult(), trajectory: makeTrajectory(claimed.id) });
  const { status, body } = await answer;
  assert.equal(status, 200);
  assert.deepEqual(body, processReply.parse(body));
  assert.deepEqual(
    [body.resolved, body.reward, body.success, body.filter, body.critical_error, body.error, body.instance_id, body.trajectory_id],
    [true, 1, true, false, null, null, 'aime-1', 3],
  );
});

test('an unknown data_source, a bad task and bad parameters get 400 with a detail', async () => {
  const floor = await started();
  const refuse = async (fields: object, params: object = {}) => {
    const reply = await floor.call('POST', '/process', { instance: { ...instance, ...fields }, sampling_params: params });
    assert.equal(reply.status, 400);
    assert.equal(reply.body.detail, errorOf(reply).message);
    return reply.body.detail;
  };
  assert.match(await refuse({ data_source: 'nope' }), /^instance\.data_source: .*"nope"/);
  assert.match(await refuse({ question: 7 }), /^instance\.question: /);
  assert.match(await refuse({ data_source: 'swebench', broken: true }), /^instance: this instance cannot be read$/);
  assert.match(await refuse({}, { temperature: 'hot' }), /^sampling_params\.temperature: /);
  const prompt = [{ role: 'user', content: [{ type: 'image', image: 'data:' }] }];
  assert.match(await refuse({ prompt }), /^instance\.prompt\[0\]\.content\[0\]: .*"image" are not supported/);
});

test('a repeated instance runs again, and so does a repeated job id', async () => {
  const floor = await started();
  const ids: string[] = [];
  for (const job_id of [undefined, undefined, 'job/1', 'job/1']) {
    const answer = floor.call('POST', '/process', { instance: { ...instance, instance_id: 'again' }, sampling_params, job_id });
    await claimNext(floor).then((claimed) => floor.worker.finish(claimed, { state: 'failed', failure: makeFailure() }));
    ids.push((await answer).body.rollout_id);
  }
  assert.equal(new Set(ids).size, 4);
  assert.deepEqual([ids[0], ids[2]], ['again-3', 'job-1']);
  assert.match(ids[1] ?? '', /^again-3\./);
});

test('cancel always returns 200, and stops the job before, while and after it runs', async () => {
  const floor = await started();
  const cancel = async (job_id: string) => {
    const reply = await floor.call('POST', '/cancel', { job_id });
    assert.deepEqual([reply.status, reply.body], [200, { status: `Cancel requested for job ${job_id}` }]);
  };
  await cancel('unknown id /☃');
  await cancel('☃');
  await cancel('early');
  const early = await floor.call('POST', '/process', { instance, sampling_params, job_id: 'early' });
  assert.deepEqual([early.body.error, early.body.filter, early.body.reward], ['cancelled', true, null]);

  const running = floor.call('POST', '/process', { instance, sampling_params, job_id: 'late' });
  const claimed = await claimNext(floor);
  await cancel('late');
  assert.deepEqual(await floor.worker.report(), ['late']);
  await floor.worker.finish(claimed, { state: 'cancelled' });
  assert.equal((await running).body.success, false);
  await cancel('late');
});

test('stop cancels only rollouts from /process', async () => {
  const floor = await started();
  const other = await floor.submit();
  await floor.worker.claim();
  const first = floor.call('POST', '/process', { instance, sampling_params });
  await queued(floor);
  assert.equal((await floor.call('POST', '/stop')).status, 200);
  assert.equal((await first).body.error, 'cancelled');
  assert.equal((await floor.call('GET', `/v1/rollouts/${other}`)).body.state, 'init');
});

test('a caller that disconnects cancels its rollout', async () => {
  const floor = await started();
  const address = await floor.listen();
  const caller = request(`${address}/process`, { method: 'POST', headers: { 'content-type': 'application/json' } });
  caller.on('error', () => {}); // it destroys its own connection
  caller.end(JSON.stringify({ instance, sampling_params }));
  const claimed = await claimNext(floor);
  const stream = await fetch(`${address}/v1/events?after=0`);
  caller.destroy();
  assert.ok(stream.body);
  const events = await readEvents(stream.body, (seen) => seen.some((event) => event.kind === 'rollout-cancel'));
  assert.equal(events.at(-1)?.rollout_id, claimed.id);
});

test('servers are added before the start, without /v1, and once', async () => {
  await using floor = await openFloor();
  await floor.worker.register();
  for (const address of ['http://10.0.0.1:8000/v1', 'http://10.0.0.1:8000', '10.0.0.1:8000/v1/']) {
    assert.equal((await floor.call('POST', '/add_llm_server', { address })).status, 200);
  }
  assert.deepEqual(
    (await floor.store.backends()).map(({ url }) => url),
    ['http://10.0.0.1:8000'],
  );
  assert.equal((await floor.call('POST', '/add_llm_server', { address: 'ftp://x' })).status, 400);
  assert.equal((await floor.call('POST', '/clear_llm_server')).status, 200);
  assert.deepEqual(await floor.store.backends(), []);
});

test('the dialect of a server is found by asking it', async () => {
  const has = new Map([
    ['http://10.0.0.1:1', ['vllm']],
    ['http://10.0.0.2:1', ['sglang', 'vllm']],
    ['http://10.0.0.3:1', ['prorl']],
    ['http://10.0.0.4:1', []],
  ]);
  await using floor = await openFloor({
    probe: async ({ url, dialect }) => {
      if (!has.get(url)?.includes(dialect)) throw new Error(`no route of ${dialect}`);
      return dialect === 'sglang' ? { engine: 'sglang' } : {};
    },
  });
  for (const address of has.keys()) assert.equal((await floor.call('POST', '/add_llm_server', { address })).status, 200);
  const seen = (await floor.store.backends()).map(({ url, dialect, health }) => [url, dialect, health?.brokenAtMs !== undefined]);
  assert.deepEqual(seen.sort(), [
    ['http://10.0.0.1:1', 'vllm', false],
    ['http://10.0.0.2:1', 'sglang', false],
    ['http://10.0.0.3:1', 'prorl', false],
    ['http://10.0.0.4:1', 'vllm', true],
  ]);
});

test('with keys, only the addresses of the configuration may call its routes without one, and no other routes', async () => {
  const key = 'k'.repeat(20);
  const prorl = { withoutKey: ['10.1.0.0/16', '::1'] };
  await using floor = await openFloor({ config: { keys: [key], prorl } });
  const ask = async (remoteAddress: string, url: string, headers = {}) =>
    (await floor.app.inject({ method: 'POST', url, remoteAddress, headers })).statusCode;
  assert.equal(await ask('10.1.2.3', '/clear_llm_server'), 200);
  assert.equal(await ask('::ffff:10.1.2.3', '/clear_llm_server'), 200);
  assert.equal(await ask('::1', '/clear_llm_server'), 200);
  assert.equal(await ask('10.2.2.3', '/clear_llm_server'), 401);
  assert.equal(await ask('10.1.2.3', '/v1/policy/pause'), 401);
  assert.equal(await ask('10.1.2.3', '/clear_llm_server', { origin: 'http://evil.example' }), 401);
  assert.equal(await ask('10.1.2.3', '/clear_llm_server', { authorization: 'Bearer wrong' }), 401);
});
