// The backend contract against a real engine with a real model: what the fakes promise in the contract suite of the testkit, the engine
// keeps. Only what needs a fault on order is missing here.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Backend } from '@millrace/engines';
import { Ledger } from '@millrace/model';
import { type Dialect, RolloutError, sampling } from '@millrace/protocol';
import { type ContractBed, defineBackendContract } from '@millrace/testkit';
import type { Engine } from '../engines/engine-process.ts';
import { countRunning, endOfTurnId, greedy, makeRequest, openEngineBackend, promptIds, toPrompt } from './ask.ts';

interface EngineSuiteOptions {
  readonly dialect: Dialect;
  readonly contextTokens: number;
  readonly skip: string | false;
  open(): Promise<Engine>;
}

/** Long enough to be stopped in the middle: the model's own end of turn is not among the stops. */
const endless = { maxTokens: 400, sampling: greedy, stopTokenIds: [], ...toPrompt(promptIds.slice(0, 4)) };

export function defineEngineSuite(name: string, options: EngineSuiteOptions): void {
  describe(`a real engine: ${name}`, { skip: options.skip, timeout: 1_200_000 }, () => {
    let engine: Engine;
    let backend: Backend;
    before(async () => {
      engine = await options.open();
      backend = openEngineBackend(engine, options.dialect);
    });
    after(() => engine?.[Symbol.asyncDispose]());
    const bed = () => ({ engine, backend });
    defineBackendContract({ dialect: options.dialect, open: async () => toContractBed(bed(), options) });
    defineSampling(bed);
    defineLedger(bed);
    defineRefusals(bed, options);
  });
}

function toContractBed({ engine, backend }: ReturnType<EngineBed>, { dialect, contextTokens }: EngineSuiteOptions): ContractBed {
  return {
    backend,
    contextTokens,
    endless,
    makeRequest: (changes) => makeRequest({ sampling: greedy, maxTokens: 60, ...changes }),
    toPrompt,
    countRunning: () => countRunning(engine, dialect),
    [Symbol.asyncDispose]: async () => {}, // all tests share the engine
  };
}

type EngineBed = () => { readonly engine: Engine; readonly backend: Backend };

function defineSampling(bed: EngineBed): void {
  test('ids and logprobs come back one for one, as probabilities of a real distribution', async () => {
    const { tokenIds, logprobs, finishReason } = await bed().backend.generate(makeRequest({ sampling: sampling.parse({ seed: 11 }) }));
    assert.ok(tokenIds.length > 0 && tokenIds.length <= 24);
    assert.equal(logprobs.length, tokenIds.length);
    assert.equal(finishReason, tokenIds.at(-1) === endOfTurnId ? 'stop' : 'length');
    assert.ok(logprobs.every((logprob) => logprob <= 0 && logprob > -40));
  });

  test('greedy sampling gives the same tokens every time, and ends with the stop token', async () => {
    const request = () => makeRequest({ sampling: greedy, maxTokens: 60 });
    const [first, second] = [await bed().backend.generate(request()), await bed().backend.generate(request())];
    assert.deepEqual(first.tokenIds, second.tokenIds);
    assert.deepEqual([first.finishReason, first.tokenIds.at(-1)], ['stop', endOfTurnId]);
    assert.equal(first.tokenIds.indexOf(endOfTurnId), first.tokenIds.length - 1);
  });

  test('a seed gives the same tokens again, and another gives others', async () => {
    const generate = async (seed: number) =>
      (await bed().backend.generate(makeRequest({ sampling: sampling.parse({ seed }) }))).tokenIds.join();
    assert.equal(await generate(1), await generate(1));
    assert.notEqual(await generate(1), await generate(2));
  });

  test('any token id can be a stop token', async () => {
    const { tokenIds } = await bed().backend.generate(makeRequest({ sampling: greedy }));
    const stop = tokenIds[2] ?? 0;
    const cut = await bed().backend.generate(makeRequest({ sampling: greedy, stopTokenIds: [stop] }));
    assert.deepEqual(cut.tokenIds, tokenIds.slice(0, tokenIds.indexOf(stop) + 1));
    assert.equal(cut.finishReason, 'stop');
  });

  test('all sampling fields are accepted at once', async () => {
    const all = {
      temperature: 0.7,
      top_p: 0.9,
      top_k: 40,
      min_p: 0.01,
      repetition_penalty: 1.1,
      presence_penalty: 0.1,
      frequency_penalty: 0.1,
    };
    const { tokenIds } = await bed().backend.generate(makeRequest({ sampling: sampling.parse({ ...all, seed: 3 }), maxTokens: 6 }));
    assert.ok(tokenIds.length > 0);
  });
}

function defineLedger(bed: EngineBed): void {
  test('the turns of a ledger continue from the cached ids', async () => {
    const { backend } = bed();
    const ledger = new Ledger();
    ledger.appendPrompt({ tokenIds: Array.from({ length: 200 }, (_, i) => 1000 + i), text: '', messages: [] });
    for (let turn = 0; turn < 3; turn++) {
      const { promptJson, length: promptTokens } = ledger;
      const generation = await backend.generate(
        makeRequest({ promptJson, promptTokens, sampling: greedy, maxTokens: 8, stopTokenIds: [] }),
      );
      // vLLM caches whole blocks, of 128 tokens on the CPU.
      if (turn > 0) assert.ok((generation.cachedTokens ?? 0) >= promptTokens - 140, `${generation.cachedTokens} of ${promptTokens} cached`);
      const rest = { text: '', messages: [], backend: backend.id, policyVersions: { first: 0, last: 0 }, retries: 0 };
      ledger.appendSampled({ ...generation, ...rest });
      ledger.appendObservation({ tokenIds: [198, 520, 1000 + turn], text: '', messages: [] });
    }
    assert.equal(ledger.turn, 3);
  });
}

function defineRefusals(bed: EngineBed, { dialect }: EngineSuiteOptions): void {
  const isError = (code: string, details: Readonly<Record<string, unknown>>) => (error: unknown) =>
    error instanceof RolloutError &&
    error.code === code &&
    Object.entries(details).every(([name, value]) => error.details?.[name] === value);

  test("a token id outside of the model's vocabulary is backend-refused", async () => {
    const call = bed().backend.generate(makeRequest({ prompt: [...promptIds, 60_000] }));
    await assert.rejects(call, isError('backend-refused', { reason: undefined }));
  });

  if (dialect === 'llamacpp') return; // it ignores the name
  test('a model that is not served fails the backend, because no call to it can work', async () => {
    const other = openEngineBackend(bed().engine, dialect, { model: 'other' });
    await assert.rejects(other.generate(makeRequest()), isError('backend-failed', { status: 404 }));
  });
}
