// The routers of vLLM and SGLang, as published, in front of servers whose logprobs show which of them sampled: what is recorded of a turn is
// true of the server that sampled it, whatever the router does.

import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { before, describe, test } from 'node:test';
import { chooseFreePort } from '@millrace/base/free-port';
import type { Client } from '@millrace/client';
import type { Trajectory } from '@millrace/protocol';
import { FakeBackend, type FakeBackendOptions, fakeLogprob, openFakeTokens, qwen3Folder, TestService } from '@millrace/testkit';
import { EngineProcess } from '../engines/engine-process.ts';
import { openPython } from '../engines/python-packages.ts';
import { makeRequest, openEngineBackend } from '../suite/ask.ts';

const tokens = await openFakeTokens();
const temperature = 0.5;
const rollouts = 16;

const routers = {
  vllm: { package: 'vllm-router==0.1.16', args: ['--log-level', 'error'] },
  sglang: { package: 'sglang-router==0.3.2', args: ['--log-level', 'error'] },
} as const;
type Kind = keyof typeof routers;

const older = { version: '0.31.0', weights: 1, isProcessed: true };
const newer = { version: '0.32.0', weights: 2, isProcessed: false };

async function openServer(kind: Kind, options: Partial<FakeBackendOptions>): Promise<FakeBackend> {
  const policy: FakeBackendOptions['policy'] = () => ({ text: 'The answer is \\boxed{4}.' });
  const fake = new FakeBackend({ policy, model: 'smollm2', engine: kind, ...options }, tokens);
  await fake.listen();
  return fake;
}

describe('routers', { timeout: 600_000 }, () => {
  const programs: Partial<Record<Kind, string>> = {};
  before(async () => {
    for (const kind of ['vllm', 'sglang'] as const) {
      const python = await openPython({ name: `${kind}-router`, packages: [routers[kind].package] });
      programs[kind] = join(dirname(python), `${kind}-router`);
    }
  });

  async function openRouter(stack: AsyncDisposableStack, kind: Kind, { chooses = 'round_robin', servers }: RouterOptions) {
    const opened = [];
    for (const options of servers) opened.push(stack.use(await openServer(kind, options)));
    const urls = opened.map(({ url }) => url);
    const rest = [
      '--policy',
      chooses,
      '--worker-urls',
      ...urls,
      '--prometheus-port',
      `${await chooseFreePort('127.0.0.1')}`,
      ...routers[kind].args,
    ];
    const args = (port: number) => [...(kind === 'sglang' ? ['launch'] : []), '--host', '127.0.0.1', '--port', `${port}`, ...rest];
    const program = programs[kind] ?? assert.fail();
    const router = stack.use(await EngineProcess.open({ name: `${kind}-router`, program, args, startMs: 120_000 }));
    return { router, servers: opened };
  }

  async function openService(stack: AsyncDisposableStack): Promise<Client> {
    const options = { workers: 1, tokenizer: qwen3Folder(), sandbox: { warm: { sandboxes: 0 } } };
    return stack.use(await TestService.open(options)).client;
  }

  test('vLLM’s, for each request another server: nothing is recorded that is not true of all of them', async () => {
    await using stack = new AsyncDisposableStack();
    const { router } = await openRouter(stack, 'vllm', { servers: [older, newer] });
    const client = await openService(stack);
    const { probe } = await client.backends.join({ id: 'router', url: router.url });
    assert.equal(probe?.several, true);
    const seen = (await sampleAll(client)).map(whoSampled);
    for (const { named } of seen) assert.deepEqual(named, { engine: null, version: null, mode: 'unknown' });
    assert.deepEqual(new Set(seen.map(({ by }) => by)), new Set([older.weights, newer.weights]));
  });

  test('vLLM’s, with consistent hashing: a session stays with its server', async () => {
    await using stack = new AsyncDisposableStack();
    const { router, servers } = await openRouter(stack, 'vllm', { chooses: 'consistent_hash', servers: [older, newer] });
    const backend = openEngineBackend(router, 'vllm');
    for (let turn = 0; turn < 3; turn += 1)
      for (let at = 0; at < 12; at += 1) await backend.generate(makeRequest({ prompt: [1, 2, at], sessionId: `rollout-${at}` }));
    const sessions = servers.map(({ requests }) => new Set(requests.map(({ promptIds }) => promptIds[2])));
    assert.equal(sessions.flatMap((some) => [...some]).length, 12, 'no session was on both');
    for (const some of sessions) assert.ok(some.size > 0);
  });

  test('vLLM’s, with consistent hashing over equal servers: version and mode are recorded', async () => {
    await using stack = new AsyncDisposableStack();
    const { router } = await openRouter(stack, 'vllm', { chooses: 'consistent_hash', servers: [older, { ...older, weights: 2 }] });
    const client = await openService(stack);
    await client.backends.join({ id: 'router', url: router.url });
    for (const trajectory of await sampleAll(client)) {
      assert.deepEqual(whoSampled(trajectory).named, { engine: 'vllm', version: older.version, mode: 'processed' });
    }
  });

  test('SGLang’s: it joins without a dialect, and says that it has several servers', async () => {
    await using stack = new AsyncDisposableStack();
    const { router } = await openRouter(stack, 'sglang', { servers: [older, { ...older, weights: 2 }] });
    const client = await openService(stack);
    const { probe, dialect } = await client.backends.join({ id: 'router', url: router.url });
    assert.deepEqual([dialect, probe?.several], ['sglang', true]);
    const seen = (await sampleAll(client)).map(whoSampled);
    for (const { named } of seen) assert.deepEqual(named, { engine: null, version: null, mode: 'processed' });
    assert.deepEqual(new Set(seen.map(({ by }) => by)), new Set([1, 2]));
  });

  for (const kind of ['vllm', 'sglang'] as const)
    test(`${kind}: a turn that a pause cuts is continued, and every token has its logprob`, async () => {
      await using stack = new AsyncDisposableStack();
      const { router, servers } = await openRouter(stack, kind, { servers: [{ ...older, tokenMs: 100 }] });
      const client = await openService(stack);
      await client.backends.join({ id: 'router', url: router.url });
      const { id } = (await client.submit([makeTask('cut')]))[0] ?? assert.fail();
      while (servers[0]?.inFlight === 0) await new Promise((resolve) => setTimeout(resolve, 20));
      await client.policy.pause({ mode: 'abort' });
      await client.policy.resume();
      const view = await client.wait(id, { signal: AbortSignal.timeout(60_000) });
      assert.equal(view.state, 'done', view.failure?.message);
      assert.equal(whoSampled(await client.trajectory(id)).by, older.weights);
    });
});

interface RouterOptions {
  readonly chooses?: string;
  readonly servers: readonly Partial<FakeBackendOptions>[];
}

const makeTask = (id: string) => ({
  ...{ id, scenario: 'math', task: { question: 'What is 2 + 2?', answer: '4' } },
  sampling: { temperature, max_tokens: 64 },
});

async function sampleAll(client: Client): Promise<Trajectory[]> {
  const found: Trajectory[] = [];
  for await (const { id, state, failure } of await client.run(Array.from({ length: rollouts }, (_, i) => makeTask(`rollout-${i}`)))) {
    assert.equal(state, 'done', failure?.message);
    found.push(await client.trajectory(id));
  }
  return found;
}

/** What the record names, and the weights of the server whose logprobs these are, in either mode. */
function whoSampled({ segments, provenances = [] }: Trajectory) {
  const ids = segments.flatMap(({ tokenIds }) => [...tokenIds]);
  const logprobs = segments.flatMap(({ tokenIds, logprobs }) =>
    logprobs.length > 0 ? [...logprobs] : [...tokenIds].map(() => Number.NaN),
  );
  const isBy = (weights: number) => (id: number, at: number) => {
    if (Number.isNaN(logprobs[at])) return true;
    return [temperature, 1].some((divisor) => fakeLogprob(at, id, { weights, temperature: divisor }) === logprobs[at]);
  };
  const { engine, engine_version: version, logprobs_mode: mode } = provenances[0] ?? assert.fail();
  return { named: { engine, version, mode }, by: [1, 2].find((weights) => ids.every(isBy(weights))) };
}
