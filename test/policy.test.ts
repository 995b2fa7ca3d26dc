// Changing the weights of a running service: a pause survives every process, and a swap never refuses a submission.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { processReply, type RolloutView } from '@millrace/protocol';
import { openFakeBackend, openFakeTokens, qwen3Folder, scriptedPolicy, TestService } from '@millrace/testkit';

const tokens = await openFakeTokens();
const tokenizer = qwen3Folder();
const policy = scriptedPolicy([{ match: /1 \+ 1/, turns: ['It is \\boxed{2}.'] }]);
const math = (id: string) => ({ id, scenario: 'math', task: { question: '1 + 1 = ?', answer: '2' } });
const versionsOf = ({ result }: RolloutView) => [result?.policy_versions?.first, result?.policy_versions?.last];

/** Waits until this many live rollouts are in their run stage. */
async function reachRun({ client }: TestService, count: number): Promise<void> {
  const running = new Set<string>();
  for await (const { kind, rollout_id, data } of client.events({ after: 0 })) {
    if (rollout_id === undefined) continue;
    if (kind === 'rollout-move' && data.to === 'run') running.add(rollout_id);
    else if (kind === 'rollout-end' || kind === 'rollout-queue') running.delete(rollout_id);
    if (running.size === count) return;
  }
}

test('a pause survives kill -9 of server and workers: waiting rollouts are sampled only after the resume, under its version', async () => {
  await using backend = await openFakeBackend({ policy, tokens });
  await using service = await TestService.open({ workers: 1, tokenizer, pipeline: { leaseMs: 2000 } });
  const { client } = service;
  await client.backends.join({ url: backend.url, policy_version: 3 });
  assert.deepEqual(versionsOf(await client.wait((await client.submit([math('before')]))[0]?.id ?? '')), [3, 3]);
  assert.equal((await client.policy.pause()).state, 'paused');
  await client.submit([math('during')]);
  const [worker] = (await client.status()).workers;
  process.kill(worker?.pid ?? 0, 'SIGKILL');
  await service.kill();
  await service.start();
  const { state, policy_version } = await client.policy.get();
  assert.deepEqual([state, policy_version], ['paused', 3]);
  await client.submit([math('after')]);
  await reachRun(service, 2);
  assert.equal(backend.generations, 1);
  await client.policy.resume({ policy_version: 4 });
  for (const id of ['during', 'after']) assert.deepEqual(versionsOf(await client.wait(id)), [4, 4]);
  assert.equal((await client.backends.list())[0]?.policy_version, 4);
});

test("ProRL Agent's clear-then-add refuses no submission: rollouts wait for the next server", async () => {
  await using old = await openFakeBackend({ policy, tokens, faults: () => 'hang' });
  await using service = await TestService.open({ workers: 1, tokenizer, scenarios: [] });
  const post = async (path: string, body: unknown = {}) => {
    const headers = { 'content-type': 'application/json' };
    const reply = await fetch(new URL(path, service.url), { method: 'POST', body: JSON.stringify(body), headers });
    return { status: reply.status, body: await reply.json() };
  };
  const process = (id: number) => {
    const prompt = [{ role: 'user', content: '1 + 1 = ?' }];
    const instance = { data_source: 'math', instance_id: `i-${id}`, trajectory_id: 0, prompt, reward_model: { ground_truth: 2 } };
    return post('/process', { instance, sampling_params: { temperature: 1 } });
  };
  await post('/add_llm_server', { address: `${old.url}/v1` });
  await post('/start');
  const asked = new Promise((resolve) => old.events.once('request', resolve));
  const first = process(0);
  await asked;
  assert.equal((await post('/clear_llm_server')).status, 200);
  await old[Symbol.asyncDispose](); // stopped to load its new weights, during a turn
  const second = process(1);
  await reachRun(service, 2);
  await using fresh = await openFakeBackend({ policy, tokens });
  await post('/add_llm_server', { address: `${fresh.url}/v1` });
  for (const { status, body } of await Promise.all([first, second])) assert.deepEqual([status, processReply.parse(body).reward], [200, 1]);
  assert.equal(fresh.generations, 2);
});

test('a rollout too stale for its limit starts again under the new weights', async () => {
  const slow = fileURLToPath(new URL('../packages/testkit/src/service/fault-play.ts', import.meta.url));
  const play = await import(slow);
  await using backend = await openFakeBackend({ policy: play.policy, tokens, tokenMs: 20 });
  await using service = await TestService.open({ workers: 1, tokenizer, scenarios: [slow], pipeline: { retryDelayMs: 0 } });
  const { client } = service;
  await client.backends.join({ url: backend.url });
  const asked = new Promise((resolve) => backend.events.once('request', resolve));
  await client.submit([{ id: 'stale', scenario: 'play', task: { number: 1 }, limits: { max_staleness: 1 } }]);
  await asked;
  await client.policy.pause();
  await client.policy.resume({ policy_version: 2 });
  const view = await client.wait('stale');
  assert.deepEqual([view.state, view.reward, view.attempt, versionsOf(view)], ['done', 1, 2, [2, 2]]);
  assert.deepEqual(
    view.failures.map(({ code, blame, retryable }) => [code, blame, retryable]),
    [['too-stale', 'service', true]],
  );
});
