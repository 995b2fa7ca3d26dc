// Tasks that a reward server of ProRL Agent scores.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json as readJson } from 'node:stream/consumers';
import { test } from 'node:test';
import { limits } from '@millrace/protocol';
import { loadScenarios } from '../src/load/load.ts';
import { makeRewardScenario } from '../src/reward-server.ts';

async function openScorer(answer: (body: Record<string, unknown>) => [number, string]) {
  const seen: { path: string | undefined; body: Record<string, unknown> }[] = [];
  const server = createServer(async (request, response) => {
    const body = (await readJson(request)) as Record<string, unknown>;
    seen.push({ path: request.url, body });
    const [status, text] = answer(body);
    response.writeHead(status).end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = () => new Promise<void>((resolve) => server.close(() => resolve()).closeAllConnections());
  return { address, seen, [Symbol.asyncDispose]: close };
}

async function score(address: string, instance: Record<string, unknown>, answer: string) {
  const scenario = makeRewardScenario([address]);
  const task = scenario.task.safeParse(scenario.fromInstance?.(instance));
  if (!task.success) throw new Error(JSON.stringify(task.error.issues));
  const rest = { limits: limits.parse({}), signal: new AbortController().signal, artifact: Buffer.alloc(0), sampledTokens: 0 };
  const openSandbox = () => Promise.reject(new Error('no sandbox'));
  return scenario.evaluate({ task: task.data, end: { stopReason: 'completed', answer }, openSandbox, ...rest });
}

const instance = {
  data_source: 'if_eval',
  prompt: [{ role: 'user', content: 'Say hi.' }],
  reward_model: { ground_truth: { rule: 'hi' } },
};

test('the answer, the ground truth and the data source go to the server, and its score is the reward', async () => {
  await using scorer = await openScorer(() => [200, '{"score": [0.5, "half"]}']);
  const { reward } = await score(scorer.address, instance, 'hi');
  assert.equal(reward, 0.5);
  assert.deepEqual(scorer.seen, [
    {
      path: '/compute_score',
      body: { solution_str: '<think>\n\n</think>\nhi', ground_truth: { rule: 'hi' }, data_source: 'if_eval' },
    },
  ]);
});

test('reasoning_gym is scored on its own route, with the entry of the task', async () => {
  await using scorer = await openScorer(() => [200, '{"score": true}']);
  const extra_info = { reward_model: { entry: { answer: '4' }, reasoning_task: 'sums' } };
  const { reward } = await score(`http://${scorer.address}/`, { ...instance, data_source: 'reasoning_gym', extra_info }, '4');
  assert.equal(reward, 1);
  assert.deepEqual(scorer.seen, [{ path: '/score', body: { answer: '4', entry: { answer: '4' }, task: 'sums' } }]);
});

test('a server that fails, or gives no score, is a verifier that could not measure, not a zero', async () => {
  await using broken = await openScorer(() => [500, 'out of memory']);
  await assert.rejects(score(broken.address, instance, 'hi'), /compute_score gave no score: it answered 500: out of memory/);
  await using odd = await openScorer(() => [200, '{"result": 1}']);
  await assert.rejects(score(odd.address, instance, 'hi'), { code: 'evaluate-failed' });
  await assert.rejects(score('127.0.0.1:1', instance, 'hi'), {
    code: 'sandbox-failed',
    message: /127\.0\.0\.1:1\/compute_score cannot be reached/,
  });
});

test('the scenario exists only where reward servers are configured', async () => {
  assert.equal((await loadScenarios([])).get('reward-server'), undefined);
  assert.equal((await loadScenarios([], { rewardServers: ['h'] })).get('reward-server')?.name, 'reward-server');
});
