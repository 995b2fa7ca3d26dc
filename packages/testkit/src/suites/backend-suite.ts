// The contract suite of backend adapters. Every dialect must pass it: each fault becomes the error code that the contract names,
// and no invalid reply becomes part of a trajectory.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import type { Backend, BackendRecord, GenerateRequest } from '@millrace/engines';
import { backendId, type Dialect, type ErrorCode, RolloutError, sampling } from '@millrace/protocol';
import { fakeLogprob } from '../fake-backend/engines/logprob.ts';
import { FakeBackend } from '../fake-backend/fake-backend.ts';
import { type Fault, scriptedFaults } from '../fake-backend/faults.ts';
import type { FakeBackendOptions } from '../fake-backend/options.ts';
import type { Policy } from '../fake-backend/policy.ts';
import { openFakeTokens } from '../fake-backend/tokens.ts';
import { type ContractBed, defineBackendContract } from './backend-contract.ts';

const promptIds = [151644, 872, 198, 9707, 151645, 198, 151644, 77091, 198];
const spoken = 'The answer is 42.';

const faultCodes: readonly (readonly [Fault, ErrorCode])[] = [
  ['http-500', 'backend-failed'],
  ['http-429', 'backend-failed'],
  ['http-400', 'backend-refused'],
  ['context-length', 'backend-refused'],
  ['reset', 'backend-failed'],
  ['cut', 'backend-failed'],
  ['garbage', 'backend-failed'],
  ['endless', 'backend-bad-reply'],
  ['no-choices', 'backend-bad-reply'],
  ['misaligned', 'backend-bad-reply'],
  ['no-logprobs', 'backend-bad-reply'],
  ['floor-logprobs', 'backend-bad-reply'],
  ['logits', 'backend-bad-reply'],
  ['bad-ids', 'backend-bad-reply'],
  ['too-many', 'backend-bad-reply'],
  ['wrong-prompt', 'backend-bad-reply'],
];

const penalties = ['presence_penalty', 'frequency_penalty'];
const vllmFields = ['repetition_penalty', 'max_tokens', 'seed', 'stop_token_ids', 'logprobs', 'ignore_eos', 'skip_special_tokens'];
/** The names of the sampling and request fields in each dialect, all of which must be sent. */
const fieldNames: Readonly<Record<Dialect, readonly string[]>> = {
  vllm: vllmFields,
  'vllm-completions': vllmFields,
  sglang: [
    ...['repetition_penalty', 'max_new_tokens', 'sampling_seed', 'stop_token_ids', 'ignore_eos', 'min_new_tokens', 'n'],
    ...['no_stop_trim', 'skip_special_tokens', 'spaces_between_special_tokens'],
  ],
  chat: [],
  prorl: ['repetition_penalty', 'max_tokens', 'seed', 'stop_token_ids', 'ignore_eos', 'skip_special_tokens'],
  llamacpp: ['repeat_penalty', 'n_predict', 'seed', 'samplers', 'n_probs', 'return_tokens', 'cache_prompt', 'post_sampling_probs'],
};

export interface BackendSuiteOptions {
  readonly dialect: Dialect;
  open(record: BackendRecord, options: { readonly stallMs?: number }): Backend;
}

export function defineBackendSuite(name: string, { dialect, open }: BackendSuiteOptions): void {
  const tokens = openFakeTokens();

  async function openBed(
    options: Partial<FakeBackendOptions> = {},
    settings: { readonly stallMs?: number } = {},
  ): Promise<{ fake: FakeBackend; backend: Backend } & AsyncDisposable> {
    const fake = new FakeBackend({ policy: () => ({ text: spoken }), ...engineOf(dialect), ...options }, await tokens);
    await fake.listen();
    const id = backendId.parse('b1');
    const record = { id, url: `${fake.url}/`, dialect, model: 'fake', apiKey: 'secret', policyVersion: 3, state: 'up' } as const;
    const backend = open(record, settings);
    return { fake, backend, [Symbol.asyncDispose]: () => fake[Symbol.asyncDispose]() };
  }

  /** Says the last id of its prompt and a few words, or goes on for hundreds of tokens. */
  async function openContractBed(): Promise<ContractBed> {
    const contextTokens = 2048;
    const toPrompt = (tokenIds: readonly number[]) => ({ promptJson: Buffer.from(tokenIds.join()), promptTokens: tokenIds.length });
    const isEndless = (ids: Int32Array) => ids.length === 1 || ids.length > 1000;
    const policy: Policy = ({ promptIds: ids, encode }) => {
      const words = encode(spoken);
      return { tokenIds: Int32Array.from(isEndless(ids) ? Array(1000).fill(words[0]) : [...ids.subarray(-1), ...words]) };
    };
    const bed = await openBed({ policy, maxModelLen: contextTokens, latencyMs: 30, tokenMs: 1 });
    return {
      ...bed,
      contextTokens,
      endless: { ...toPrompt([1000]), maxTokens: 400 },
      makeRequest,
      toPrompt,
      countRunning: async () => bed.fake.inFlight,
    };
  }

  describe(`a backend: ${name}`, () => {
    defineBackendContract({ dialect, open: openContractBed });

    test('the ids and logprobs are returned as the server sampled them', async () => {
      await using bed = await openBed();
      const generation = await bed.backend.generate(makeRequest());
      const { encode, endOfTurnId } = await tokens;
      assert.deepEqual(generation.tokenIds, Int32Array.from([...encode(spoken), endOfTurnId]));
      assert.deepEqual(
        generation.logprobs,
        generation.tokenIds.reduce(
          (all, id, i) => all.fill(fakeLogprob(promptIds.length + i, id), i),
          new Float32Array(generation.tokenIds.length),
        ),
      );
      assert.equal(generation.finishReason, 'stop');
      assert.equal(bed.backend.policyVersion, 3);
    });

    test('the server sees exactly the ids that were sent, and every sampling field', async () => {
      await using bed = await openBed({ apiKey: 'secret' });
      await bed.backend.generate(makeRequest({ sampling: sampling.parse({ temperature: 0.5, seed: 7 }), maxTokens: 33 }));
      const [seen] = bed.fake.requests;
      assert.deepEqual(seen?.promptIds, Int32Array.from(promptIds));
      const topK = dialect === 'prorl' ? [] : ['top_k']; // left out there where it is 0
      const fields = ['temperature', 'top_p', ...topK, 'min_p', ...penalties, ...fieldNames[dialect]];
      for (const field of fields) assert.ok(field in (seen?.sampling ?? {}), field);
      assert.equal(seen?.sampling.temperature, 0.5);
      assert.equal(seen?.sampling.seed ?? seen?.sampling.sampling_seed, 7);
      assert.equal(seen?.maxTokens, 33);
      if (dialect !== 'llamacpp') assert.deepEqual(seen?.sampling.stop_token_ids, [151645]);
      assert.equal(seen?.headers['x-session-id'], 'rollout-1');
      assert.equal(seen?.headers['x-smg-routing-key'], 'rollout-1');
      assert.equal(seen?.headers['x-request-id'], 'request-1');
      assert.equal(seen?.headers.authorization, 'Bearer secret');
    });

    // One missing logprob looks like those that llama.cpp leaves out, for which a retry does not help.
    // A trainer's own server says nothing about the prompt that it got.
    const codes = faultCodes
      .filter(([fault]) => dialect !== 'prorl' || fault !== 'wrong-prompt')
      .map(([fault, code]) =>
        dialect === 'llamacpp' && fault === 'misaligned' ? ([fault, 'backend-refused'] as const) : ([fault, code] as const),
      );

    for (const [fault, code] of codes) {
      test(`${String(fault)} is ${code}, and the next request is served`, async () => {
        await using bed = await openBed({ faults: scriptedFaults([fault]) });
        await assert.rejects(bed.backend.generate(makeRequest()), (error) => error instanceof RolloutError && error.code === code);
        assert.equal((await bed.backend.generate(makeRequest())).finishReason, 'stop');
      });
    }

    test('a server that cannot be reached is backend-failed', async () => {
      const bed = await openBed();
      await bed[Symbol.asyncDispose]();
      await assert.rejects(
        bed.backend.generate(makeRequest()),
        (error) => error instanceof RolloutError && error.code === 'backend-failed',
      );
    });

    for (const fault of ['hang', 'stuck'] as const) {
      test(`a call to a server that falls silent (${fault}) fails as backend-failed, and its connection is closed`, async () => {
        await using bed = await openBed({ faults: scriptedFaults([fault]) }, { stallMs: 600 });
        const gone = once(bed.fake.events, 'abort');
        await assert.rejects(bed.backend.generate(makeRequest()), (error) => {
          return error instanceof RolloutError && error.code === 'backend-failed' && /nothing came for 0\.\d+ s/.test(error.message);
        });
        await gone;
        assert.equal((await bed.backend.generate(makeRequest())).finishReason, 'stop');
      });
    }

    test('a cut ends the call as an abort with the tokens so far, and closes the connection', async () => {
      await using bed = await openBed({ faults: scriptedFaults(['stuck']) });
      const cut = new AbortController();
      const gone = once(bed.fake.events, 'abort');
      const isStreamed = dialect !== 'llamacpp' && dialect !== 'prorl';
      if (!isStreamed) bed.fake.events.once('request', () => cut.abort());
      const partial = await bed.backend.generate(makeRequest({ onTokens: () => cut.abort(), cut: cut.signal }));
      await gone;
      const whole = await bed.backend.generate(makeRequest());
      assert.equal(partial.finishReason, 'abort');
      assert.equal(partial.tokenIds.length, isStreamed ? 3 : 0);
      assert.deepEqual(partial.tokenIds, whole.tokenIds.slice(0, partial.tokenIds.length));
      assert.deepEqual(partial.logprobs, whole.logprobs.slice(0, partial.tokenIds.length));
    });

    for (const [fault, code] of codes) {
      test(`${String(fault)} is ${code} in a stream too`, async () => {
        await using bed = await openBed({ faults: scriptedFaults([fault]) });
        const call = bed.backend.generate(makeRequest({ onTokens: () => {} }));
        await assert.rejects(call, (error) => error instanceof RolloutError && error.code === code);
      });
    }
  });
}

/** SGLang has the same path as a trainer's own server. */
function engineOf(dialect: Dialect): Partial<FakeBackendOptions> {
  return dialect === 'prorl' ? { engine: 'prorl' } : {};
}

function makeRequest(changes: Partial<GenerateRequest> = {}): GenerateRequest {
  return {
    promptJson: Buffer.from(promptIds.join()),
    promptTokens: promptIds.length,
    sampling: sampling.parse({}),
    maxTokens: 100,
    stopTokenIds: [151645],
    sessionId: 'rollout-1',
    requestId: 'request-1',
    signal: new AbortController().signal,
    ...changes,
  };
}
