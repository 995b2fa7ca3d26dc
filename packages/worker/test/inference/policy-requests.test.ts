// What the policy adds to each call: the LoRA adapter that samples, the salt of the prefix cache, and the priority of long rollouts, in
// the fields of each server.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import { Ledger } from '@millrace/model';
import { backendId, type Dialect, RolloutError, sampling } from '@millrace/protocol';
import { FakeBackend, type FakeBackendOptions, openFakeTokens } from '@millrace/testkit';
import { type GatePolicy, PolicyGate } from '../../src/inference/policy-gate.ts';
import { BackendPool } from '../../src/inference/pool/pool.ts';
import { Sampler } from '../../src/inference/sampler.ts';

const tokens = await openFakeTokens();
const signal = new AbortController().signal;

interface Call {
  readonly dialect: Dialect;
  readonly policy?: Partial<GatePolicy>;
  readonly fakes?: readonly Partial<FakeBackendOptions>[];
  readonly prioritizeLong?: boolean;
}

/** Samples two turns, and returns what the servers received and what the ledger holds. */
async function sampleTwice({ dialect, policy = {}, fakes = [{}], prioritizeLong = false }: Call) {
  await using stack = new AsyncDisposableStack();
  const servers = fakes.map((options) => stack.use(new FakeBackend({ policy: () => ({ text: 'yes' }), ...options }, tokens)));
  const pool = stack.use(new BackendPool({ log: silentLog, pace: new Pace(), prioritizeLong }));
  for (const server of servers) await server.listen();
  pool.update(servers.map(({ url }, i) => ({ id: backendId.parse(`b${i}`), url, dialect, policyVersion: 3, state: 'up', model: 'fake' })));
  const gate = new PolicyGate();
  gate.update({ state: 'running', pause: 0, flushes: 0, policyVersion: 3, ...policy });
  const ledger = new Ledger();
  ledger.appendPrompt({ tokenIds: [1, 2, 3], text: '', messages: [] });
  using sampler = new Sampler({ ledger, pool, gate, sessionId: 'r', delayMs: 1 });
  for (let turn = 0; turn < 2; turn++) {
    const part = await sampler.sample({ sampling: sampling.parse({}), maxTokens: 20, stopTokenIds: [tokens.endOfTurnId], signal });
    ledger.appendSampled({ ...part, text: '', messages: [] });
  }
  const requests = servers.flatMap((server) => server.requests.map(({ sampling: params, options }) => ({ ...params, ...options })));
  return { requests, sampled: ledger.segments.filter(({ kind }) => kind === 'sampled') };
}

const names = {
  vllm: { adapter: 'model', salt: 'cache_salt' },
  'vllm-completions': { adapter: 'model', salt: 'cache_salt' },
  sglang: { adapter: 'lora_path', salt: 'extra_key' },
} as const;
const dialects = Object.keys(names) as (keyof typeof names)[];

for (const dialect of dialects) {
  test(`${dialect}: every call names the policy's adapter, and every sampled segment records it`, async () => {
    const { requests, sampled } = await sampleTwice({ dialect, policy: { adapter: 'step-3' }, fakes: [{ adapters: ['step-3'] }] });
    assert.deepEqual(
      requests.map((request: Record<string, unknown>) => request[names[dialect].adapter]),
      ['step-3', 'step-3'],
    );
    assert.deepEqual(
      sampled.map(({ adapter, policy_versions }) => [adapter, policy_versions?.last]),
      [
        ['step-3', 3],
        ['step-3', 3],
      ],
    );
    const base = await sampleTwice({ dialect });
    assert.deepEqual(
      base.requests.map((request: Record<string, unknown>) => request[names[dialect].adapter]),
      dialect === 'sglang' ? [undefined, undefined] : ['fake', 'fake'],
    );
    assert.ok(base.sampled.every((segment) => !('adapter' in segment)));
  });

  test(`${dialect}: a backend without the adapter is left with an error that names both`, async () => {
    const policy = { adapter: 'step-3' };
    const { sampled } = await sampleTwice({ dialect, policy, fakes: [{ adapters: [] }, { adapters: ['step-3'] }] });
    assert.deepEqual([...new Set(sampled.map(({ backend }) => backend))], ['b1']);
    await assert.rejects(sampleTwice({ dialect, policy, fakes: [{ adapters: ['other'] }] }), (error) => {
      assert.ok(error instanceof RolloutError);
      assert.equal(error.code, 'backend-failed');
      assert.match(error.message, /backend b0 does not serve the LoRA adapter step-3; load it there .*(does not exist|never been loaded)/s);
      return true;
    });
  });

  test(`${dialect}: the cache salt of the policy is in every call, and absent without one`, async () => {
    const { requests } = await sampleTwice({ dialect, policy: { cacheSalt: 'policy-3.1' } });
    assert.deepEqual(
      requests.map((request: Record<string, unknown>) => request[names[dialect].salt]),
      ['policy-3.1', 'policy-3.1'],
    );
    const plain = await sampleTwice({ dialect });
    assert.ok(plain.requests.every((request) => !(names[dialect].salt in request)));
  });

  test(`${dialect}: later turns go first if long rollouts are prioritized, and no priority is sent otherwise`, async () => {
    const { requests } = await sampleTwice({ dialect, prioritizeLong: true });
    const priorities = requests.map((request: Record<string, unknown>) => request.priority);
    assert.deepEqual(priorities, dialect === 'sglang' ? [0, 1] : [0, -1]); // vLLM serves low values first
    assert.ok((await sampleTwice({ dialect })).requests.every((request) => !('priority' in request)));
  });
}

test('llama.cpp cannot select an adapter by name: the call fails there, and may succeed elsewhere', async () => {
  const refused = sampleTwice({ dialect: 'llamacpp', policy: { adapter: 'step-3' } });
  await assert.rejects(
    refused,
    (error) => error instanceof RolloutError && error.code === 'backend-failed' && /^llama.cpp .* step-3$/.test(error.message),
  );
});
