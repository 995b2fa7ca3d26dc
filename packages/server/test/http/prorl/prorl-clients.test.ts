// What ProRL Agent's own clients need from its routes, each as one of them met it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { processReply, type Trajectory } from '@millrace/protocol';
import { FakeClock } from '@millrace/testkit/plain';
import { type Floor, makeFailure, makeResult, makeTrajectory, openFloor, shareFloor } from '../floor.ts';
import { post, type Result, toTrainingRow } from './verl-client.ts';

const instance = { data_source: 'deepscaler', instance_id: 'aime-1', trajectory_id: 3, question: '1 + 1', answer: '2' };
const sharedFloor = shareFloor();
let jobs = 0;

/** Runs one job: a worker ends it as the test says. */
async function runJob(floor: Floor, { params = {}, fields = {}, ...ending }: Result): Promise<{ reply: Result; claimed: Result }> {
  const url = await listenOnce(floor);
  await post(`${url}/start`);
  await post(`${url}/add_llm_server`, { address: 'http://10.0.0.1:8000' });
  jobs += 1;
  const answer = post(`${url}/process`, { instance: { ...instance, ...fields }, sampling_params: params, job_id: `job-${jobs}` });
  const claimed = await Promise.race([claimNext(floor), answer.then(({ body }) => Promise.reject(new Error(JSON.stringify(body))))]);
  const { state = 'done', result = makeResult(), trajectory = makeTrajectory(claimed.id), failure } = ending;
  const optional = { ...(trajectory ? { trajectory: { ...trajectory, rolloutId: claimed.id } } : {}), ...(failure ? { failure } : {}) };
  await floor.worker.finish(claimed, { state, result, ...optional } as never);
  const { status, body } = await answer;
  assert.equal(status, 200, JSON.stringify(body));
  assert.deepEqual(body, processReply.parse(body));
  return { reply: body, claimed };
}

const addresses = new WeakMap<Floor, Promise<string>>();
function listenOnce(floor: Floor): Promise<string> {
  const known = addresses.get(floor) ?? floor.listen();
  addresses.set(floor, known);
  return known;
}

async function claimNext(floor: Floor) {
  while ((await floor.store.counts()).queued === 0) {
    await new Promise<void>((resolve) => {
      const stop = floor.store.onHint(() => {
        stop();
        resolve();
      });
    });
  }
  return floor.worker.claim();
}

test('1. posts without a body are accepted with any content type', async () => {
  await using floor = await openFloor();
  const url = await floor.listen();
  for (const path of ['/clear_llm_server', '/start', '/stop']) assert.equal((await post(`${url}${path}`)).status, 200, path);
  const text = await fetch(`${url}/start`, { method: 'POST', body: 'x', headers: { 'content-type': 'text/plain' } });
  assert.equal(text.status, 415, 'a body that is not JSON');
  await text.body?.cancel();
});

test('2. joined, the token ids of all messages are the trajectory, and only assistant messages are trained on', async () => {
  const { reply } = await runJob(sharedFloor(), {});
  const row = toTrainingRow(reply);
  assert.deepEqual(row.promptIds, [1, 2, 3]);
  assert.deepEqual(row.responseIds, [4, 5, 6, 7, 8, 9]);
  assert.deepEqual(row.lossMask, [1, 1, 0, 0, 1, 1]);
  assert.deepEqual(row.logprobs, [-0.5, -0.25, 0, 0, -1, -2]);
});

test('2. a turn that was cut and continued is one message, and ids that no message carries belong to the next one', async () => {
  const [prompt, first, tool, second] = makeTrajectory('x').segments;
  if (!prompt || !first || !tool || !second) assert.fail('the trajectory has four segments');
  const none = new Float32Array();
  const cut = { ...first, messages: [], finish_reason: 'abort' as const, tokenIds: Int32Array.of(40), logprobs: Float32Array.of(-3) };
  const inserted = { kind: 'inserted' as const, turn: 1, text: '<end>', messages: [], tokenIds: Int32Array.of(99), logprobs: none };
  const few = { role: 'assistant' as const, content: 'an example' };
  const opening = { ...prompt, messages: [{ role: 'user' as const, content: 'q' }, few, { role: 'user' as const, content: 'hello' }] };
  const trajectory = { ...makeTrajectory('x'), segments: [opening, cut, first, inserted, tool, second, inserted] } as Trajectory;
  const { reply } = await runJob(sharedFloor(), { trajectory });
  const joined = reply.messages.flatMap((message: Result) => message.token_ids);
  assert.deepEqual(joined, [1, 2, 3, 40, 4, 5, 99, 6, 7, 8, 9]);
  const said = reply.messages.filter((message: Result) => message.input_ids !== null);
  assert.deepEqual(
    said.map((message: Result) => [message.token_ids, message.input_ids.length, message.logprobs]),
    [
      [[40, 4, 5], 3, [-3, -0.5, -0.25]],
      [[8, 9], 9, [-1, -2]],
    ],
  );
  assert.deepEqual(reply.messages[1], { role: 'assistant', content: 'an example', token_ids: [], input_ids: null, logprobs: null });
});

test('2. of a rewritten history, the last branch is sent: one sequence that the model saw', async () => {
  const { segments } = makeTrajectory('x');
  const [prompt, first] = segments;
  if (!prompt || !first) assert.fail('the trajectory has a prompt and a turn');
  const branch = [
    { ...prompt, branch: 1, tokenIds: Int32Array.of(70, 71) },
    { ...first, branch: 1, turn: 3 },
  ];
  const { reply } = await runJob(sharedFloor(), { trajectory: { ...makeTrajectory('x'), segments: [...segments, ...branch] } });
  const row = toTrainingRow(reply);
  assert.deepEqual(
    [row.promptIds, row.responseIds],
    [
      [70, 71],
      [4, 5],
    ],
  );
});

test('3. messages end with an assistant message, or are empty so that the client tries again', async () => {
  const { segments } = makeTrajectory('x');
  const cutOff = { ...makeTrajectory('x'), segments: segments.slice(0, 3) };
  const { reply } = await runJob(sharedFloor(), { trajectory: cutOff });
  assert.equal(reply.messages.at(-1).role, 'assistant');
  const unstarted = { ...makeTrajectory('x'), segments: segments.slice(0, 1) };
  const failed = await runJob(sharedFloor(), { state: 'failed', failure: makeFailure(), trajectory: unstarted });
  assert.deepEqual(failed.reply.messages, []);
});

test('4. every data source of its registry maps to a scenario, or the refusal says which one is missing', async () => {
  const floor = sharedFloor();
  const { claimed } = await runJob(floor, { fields: { data_source: undefined, repo: 'a/b' } });
  assert.equal(claimed.submission.scenario, 'free', 'without a data_source it is swebench');
  const url = await listenOnce(floor);
  const ask = async (data_source: string) => (await post(`${url}/process`, { instance: { ...instance, data_source } })).body.detail;
  for (const name of ['apps', 'codecontests', 'codeforces', 'taco', 'deepcoder-preview'])
    assert.match(await ask(name), /^instance\.data_source: .* maps to the scenario code, which is not loaded/);
  for (const name of ['stem', 'rStar', 'if_eval', 'llm_judge', 'tool_call', 'reasoning_gym'])
    assert.match(await ask(name), /maps to the scenario (stem|reward-server), which is not loaded/);
  for (const name of ['gui', 'osworld']) assert.match(await ask(name), /is not supported: it needs a screen/);
});

test('4. git_patch is the patch that the scenario reports with its score', async () => {
  const { reply } = await runJob(sharedFloor(), { result: makeResult({ score: { patch: 'diff --git a/x b/x' } }) });
  assert.equal(reply.git_patch, 'diff --git a/x b/x');
});

test('6. tool calls are flat, with their arguments as text', async () => {
  const { reply } = await runJob(sharedFloor(), {});
  assert.deepEqual(reply.messages[1].tool_calls, [{ name: 'bash', arguments: '{"command":"ls"}' }]);
  assert.deepEqual(Object.keys(reply.messages[2]).sort(), ['content', 'input_ids', 'logprobs', 'role', 'token_ids']);
});

test('6. the content of a message has the reasoning in think tags', async () => {
  const [prompt, first] = makeTrajectory('x').segments;
  const said = { ...first, messages: [{ role: 'assistant', content: 'So 2.', reasoning: 'one and one' }] };
  const { reply } = await runJob(sharedFloor(), { trajectory: { ...makeTrajectory('x'), segments: [prompt, said] } });
  assert.equal(reply.messages.at(-1).content, '<think>\none and one\n</think>\n\nSo 2.');
});

test('8. without a backend /process is refused at once, except while they are being replaced', async () => {
  await using floor = await openFloor();
  await floor.worker.register();
  const url = await floor.listen();
  await post(`${url}/start`);
  const refused = await post(`${url}/process`, { instance, sampling_params: {} });
  assert.deepEqual([refused.status, /No LLM server/.test(refused.body.detail)], [503, true]);
  await post(`${url}/add_llm_server`, { address: 'h:1' });
  await post(`${url}/clear_llm_server`);
  const answer = post(`${url}/process`, { instance, sampling_params: {} });
  await post(`${url}/add_llm_server`, { address: 'h:2' });
  await floor.worker.finish(await claimNext(floor), { state: 'failed', failure: makeFailure() });
  assert.equal((await answer).status, 200);
});

test('8. a job that is not done after twice its time and ten seconds is cancelled and answered with 504', async () => {
  const clock = new FakeClock();
  await using floor = await openFloor({ clock, config: { prorl: { timeoutS: 60 } } });
  await floor.worker.register();
  const url = await floor.listen();
  await post(`${url}/start`);
  await post(`${url}/add_llm_server`, { address: 'h:1' });
  const answer = post(`${url}/process`, { instance, sampling_params: {}, job_id: 'late' });
  let isAnswered = false;
  void answer.then(() => {
    isAnswered = true;
  });
  while ((await floor.store.counts()).queued === 0) await new Promise((resolve) => setImmediate(resolve));
  while (!isAnswered) {
    clock.advance(10_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const late = await answer;
  assert.deepEqual([late.status, late.body.detail], [504, 'Processing timed out']);
  assert.ok(clock.monotonic() >= 130_000, `${clock.monotonic()} ms`);
  assert.equal((await floor.call('GET', '/v1/rollouts/late')).body.state, 'cancelled');
});

test('9. at a limit the agent has an error and is filtered, except for malformed calls', async () => {
  const rows: readonly [string, boolean, RegExp | null, boolean][] = [
    ['completed', false, null, true],
    ['tool_stopped', false, null, true],
    ['max_turns', true, /maximum iteration/, true],
    ['max_tokens', true, /AgentFormatError/, false],
    ['context_overflow', true, /ContextWindowExceeded/, true],
    ['parse_error', false, /AgentToolCallError/, false],
    ['loop', true, /AgentStuckInLoopError/, true],
  ];
  for (const [stop_reason, filter, error, endProperly] of rows) {
    const { reply } = await runJob(sharedFloor(), { result: makeResult({ stop_reason: stop_reason as never }) });
    assert.deepEqual([reply.filter, reply.success, reply.end_properly], [filter, error === null, endProperly], stop_reason);
    assert.equal(reply.finish, stop_reason === 'tool_stopped');
    assert.deepEqual([reply.resolved, reply.reward, reply.critical_error], [true, 1, null]);
    if (error === null) assert.equal(reply.error, null);
    else assert.match(reply.error, error);
    assert.equal(toTrainingRow(reply).isError, error !== null);
  }
});

test('10. a job that took longer than its time is a timeout, whatever its reward', async () => {
  const floor = sharedFloor();
  const slow = await runJob(floor, { result: makeResult({ timings: { ...makeResult().timings, run_ms: 400_000 } }) });
  const stopped = await runJob(floor, { result: makeResult({ stop_reason: 'rollout_timeout' }) });
  for (const { reply } of [slow, stopped])
    assert.deepEqual([reply.critical_error, reply.filter, reply.resolved, reply.timing.timeout_triggered], ['timeout', true, false, true]);
  assert.equal(slow.reply.reward, 1, 'the reward is still what the verifier measured');
  const { init_timeout_s, run_timeout_s, evaluate_timeout_s } = slow.claimed.submission.limits;
  assert.deepEqual([init_timeout_s, run_timeout_s, evaluate_timeout_s], [300, 300, 300]);
});

test('10. parameters are read as numbers or as text, with the defaults of the original', async () => {
  const text = { temperature: '0.6', top_p: '0.9', top_k: '-1', seed: -1, max_iterations: '35', max_model_len: '8192', min_p: null };
  const { claimed } = await runJob(sharedFloor(), { params: { ...text, max_output_tokens: 512, repetition_penalty: 1.1 } });
  const { sampling, limits } = claimed.submission;
  assert.deepEqual([sampling.temperature, sampling.top_p, sampling.top_k, sampling.seed], [0.6, 0.9, 0, undefined]);
  assert.deepEqual([sampling.max_tokens, sampling.repetition_penalty], [512, 1.1]);
  assert.deepEqual([limits.max_turns, limits.max_context_tokens, limits.max_repeated_calls], [35, 8192, undefined]);
  const tokens = { token_level_generation: true, max_output_tokens: 512, max_model_len: 4096, top_k: 20, strict_loop_detector: true };
  const second = (await runJob(sharedFloor(), { params: tokens })).claimed.submission;
  assert.deepEqual([second.sampling.max_tokens, second.sampling.top_k], [4096, 20], 'in token mode a turn has all the room that is left');
  assert.deepEqual([second.limits.max_turns, second.limits.max_repeated_calls], [2, 4]);
});

test('10. the status says that it is running, with the names of both of its servers', async () => {
  const floor = sharedFloor();
  const url = await listenOnce(floor);
  const status = (await (await fetch(`${url}/status`)).json()) as Result;
  assert.equal(status.running, true);
  for (const name of ['jobs', 'init', 'run', 'eval', 'total', 'init_queue']) assert.equal(typeof status[name], 'number', name);
});
