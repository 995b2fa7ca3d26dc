// The backend contract against a real engine with a real model: what the fakes promise in the contract suite of the testkit, the engine
// keeps. Only what needs a fault on order is missing here.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type Dialect, RolloutError, sampling } from '@millrace/protocol';
import { type Backend, Ledger } from '@millrace/server';
import type { Engine } from '../engines/engine-process.ts';
import { countRunning, endOfTurnId, greedy, makeRequest, openEngineBackend, promptIds } from './ask.ts';

export interface EngineSuiteOptions {
  readonly dialect: Dialect;
  readonly contextTokens: number;
  readonly skip: string | false;
  open(): Promise<Engine>;
}

/** Long enough to be stopped in the middle: the model's own end of turn is not among the stops. */
const endless = { maxTokens: 400, sampling: greedy, stopTokenIds: [], prompt: promptIds.slice(0, 4) };

export function defineEngineSuite(name: string, options: EngineSuiteOptions): void {
  describe(`a real engine: ${name}`, { skip: options.skip, timeout: 900_000 }, () => {
    let engine: Engine;
    let backend: Backend;
    before(async () => {
      engine = await options.open();
      backend = openEngineBackend(engine, options.dialect);
    });
    after(() => engine?.[Symbol.asyncDispose]());
    const bed = () => ({ engine, backend });
    defineSampling(bed);
    defineStreaming(bed, options);
    defineEnds(bed, options);
    defineRefusals(bed, options);
  });
}

type Bed = () => { readonly engine: Engine; readonly backend: Backend };

function defineSampling(bed: Bed): void {
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

  test('many calls at once each get their own reply', async () => {
    const request = (i: number) => makeRequest({ prompt: [...promptIds, 100 + i], sampling: greedy, maxTokens: 2 });
    const alone: string[] = [];
    for (let i = 0; i < 8; i++) alone.push((await bed().backend.generate(request(i))).tokenIds.join());
    const together = await Promise.all(alone.map((_, i) => bed().backend.generate(request(i))));
    assert.deepEqual(
      together.map(({ tokenIds }) => tokenIds.join()),
      alone,
    );
    assert.ok(new Set(alone).size > 1);
  });

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

function defineStreaming(bed: Bed, { dialect }: EngineSuiteOptions): void {
  test('tokens are reported as they come where the engine streams exactly, each once, and the end is the same', async () => {
    const whole = await bed().backend.generate(makeRequest({ sampling: greedy }));
    const seen: { ids: number[]; logprobs: number[] } = { ids: [], logprobs: [] };
    let calls = 0;
    const onTokens = (ids: Int32Array, logprobs: Float32Array) => {
      calls += 1;
      seen.ids.push(...ids);
      seen.logprobs.push(...logprobs);
    };
    const streamed = await bed().backend.generate(makeRequest({ sampling: greedy, onTokens }));
    assert.deepEqual([streamed.tokenIds, streamed.finishReason], [whole.tokenIds, whole.finishReason]);
    if (dialect === 'llamacpp') return assert.equal(calls, 0);
    assert.ok(calls > 1);
    assert.deepEqual([seen.ids, seen.logprobs], [[...streamed.tokenIds], [...streamed.logprobs]]);
  });

  test('a cut keeps the tokens until then as a prefix of the whole, and frees the engine', async () => {
    const cut = new AbortController();
    let count = 0;
    const onTokens = (ids: Int32Array) => {
      count += ids.length;
      if (count >= 5) cut.abort();
    };
    if (dialect === 'llamacpp') void waitForRunning(bed().engine, dialect, (running) => running > 0).then(() => cut.abort());
    const partial = await bed().backend.generate(makeRequest({ ...endless, onTokens, cut: cut.signal }));
    assert.equal(partial.finishReason, 'abort');
    await waitForRunning(bed().engine, dialect, (running) => running === 0);
    if (dialect === 'llamacpp') return assert.equal(partial.tokenIds.length, 0);
    assert.ok(partial.tokenIds.length >= 5 && partial.tokenIds.length < 400, `${partial.tokenIds.length} tokens`);
    const whole = await bed().backend.generate(makeRequest({ ...endless, maxTokens: partial.tokenIds.length }));
    assert.deepEqual(partial.tokenIds, whole.tokenIds);
    assert.deepEqual(partial.logprobs.length, whole.logprobs.length);
  });

  test('a call that is cut before its first token ends as an abort without tokens', async () => {
    const generation = await bed().backend.generate(makeRequest({ ...endless, cut: AbortSignal.timeout(1) }));
    assert.deepEqual([generation.finishReason, generation.tokenIds.length], ['abort', 0]);
    await waitForRunning(bed().engine, dialect, (running) => running === 0);
  });
}

function defineEnds(bed: Bed, { dialect, contextTokens }: EngineSuiteOptions): void {
  test('a turn that is cut at the limit says so', async () => {
    const generation = await bed().backend.generate(makeRequest({ sampling: greedy, maxTokens: 3 }));
    assert.deepEqual([generation.tokenIds.length, generation.finishReason], [3, 'length']);
  });

  test('a prompt that fits, with more asked for than the context holds, is cut where the context ends', async () => {
    const prompt = Array<number>(contextTokens - 20).fill(28);
    const generation = await bed().backend.generate(makeRequest({ prompt, sampling: greedy, maxTokens: 100, stopTokenIds: [] }));
    assert.ok(generation.tokenIds.length <= 20 && generation.tokenIds.length > 0, `${generation.tokenIds.length} tokens`);
    assert.equal(generation.finishReason, generation.tokenIds.at(-1) === endOfTurnId ? 'stop' : 'length');
  });

  test('more tokens than any engine gives by default come back, where they are asked for', async () => {
    const generation = await bed().backend.generate(makeRequest({ ...endless, maxTokens: 150 }));
    assert.ok(generation.tokenIds.length > 16);
  });

  test('an abort ends the call with its reason, and the engine stops sampling', async () => {
    const controller = new AbortController();
    const call = bed().backend.generate(makeRequest({ ...endless, signal: controller.signal }));
    void waitForRunning(bed().engine, dialect, (running) => running > 0).then(() => controller.abort(new Error('enough')));
    await assert.rejects(call, /enough/);
    await waitForRunning(bed().engine, dialect, (running) => running === 0);
  });
}

function defineRefusals(bed: Bed, { dialect, contextTokens }: EngineSuiteOptions): void {
  const refusedFor = (reason: string | undefined) => (error: unknown) =>
    error instanceof RolloutError && error.code === 'backend-refused' && error.details?.reason === reason;

  test('a prompt that is longer than the context is backend-refused, and its details say so', async () => {
    const prompt = Array<number>(contextTokens + 10).fill(28);
    await assert.rejects(bed().backend.generate(makeRequest({ prompt })), refusedFor('context-length'));
  });

  test("a token id outside of the model's vocabulary is backend-refused", async () => {
    await assert.rejects(bed().backend.generate(makeRequest({ prompt: [...promptIds, 60_000] })), refusedFor(undefined));
  });

  if (dialect === 'llamacpp') return; // it ignores the name
  test('a model that is not served is backend-refused', async () => {
    const other = openEngineBackend(bed().engine, dialect, { model: 'other' });
    await assert.rejects(other.generate(makeRequest()), refusedFor(undefined));
  });
}

/** The engine's own word, not a guess. */
async function waitForRunning(engine: Engine, dialect: Dialect, isEnough: (running: number) => boolean): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (!isEnough(await countRunning(engine, dialect))) {
    if (performance.now() > deadline) throw new Error(`the engine still runs ${await countRunning(engine, dialect)} requests after 30 s`);
    await pause(50);
  }
}
