// What every backend keeps, whatever serves it: the contract suite runs this on the fakes, and the second test tier on real engines.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Backend, GenerateRequest } from '@millrace/engines';
import { type Dialect, RolloutError } from '@millrace/protocol';

export interface ContractBed extends AsyncDisposable {
  readonly backend: Backend;
  readonly contextTokens: number;
  /** A request that gives the same short reply every time. */
  makeRequest(changes?: Partial<GenerateRequest>): GenerateRequest;
  /** The changes for this prompt. */
  toPrompt(tokenIds: readonly number[]): Pick<GenerateRequest, 'promptJson' | 'promptTokens'>;
  /** The changes for a reply that goes on for hundreds of tokens, the same every time. */
  readonly endless: Partial<GenerateRequest>;
  /** How many requests the server works on, as it says itself. */
  countRunning(): Promise<number>;
}

export interface BackendContractOptions {
  readonly dialect: Dialect;
  /** The tests close what they open. */
  open(): Promise<ContractBed>;
}

/** Defines tests; call it inside a `describe`. */
export function defineBackendContract({ dialect, open }: BackendContractOptions): void {
  const isStreamed = dialect !== 'llamacpp' && dialect !== 'prorl';

  test('a turn that reaches the limit ends as length', async () => {
    await using bed = await open();
    const { tokenIds, finishReason } = await bed.backend.generate(bed.makeRequest({ maxTokens: 3 }));
    assert.deepEqual([tokenIds.length, finishReason], [3, 'length']);
  });

  test('more tokens than any server returns by default are returned on request', async () => {
    await using bed = await open();
    const { tokenIds, finishReason } = await bed.backend.generate(bed.makeRequest({ ...bed.endless, maxTokens: 150 }));
    assert.ok(tokenIds.length === 150 || (finishReason === 'stop' && tokenIds.length > 16), `${tokenIds.length} tokens, ${finishReason}`);
  });

  // A trainer's own server answers 500 and says nothing about the length.
  const isSilent = dialect === 'prorl';
  const wanted = isSilent ? 'backend-failed' : 'backend-refused, with details that name the reason';
  test(`a prompt that is too long for the server is ${wanted}`, async () => {
    await using bed = await open();
    const prompt = bed.toPrompt(Array<number>(bed.contextTokens + 10).fill(28));
    for (const streamed of [{}, { onTokens: () => {} }]) {
      await assert.rejects(bed.backend.generate(bed.makeRequest({ ...prompt, ...streamed })), (error) => {
        if (!(error instanceof RolloutError)) return false;
        return isSilent ? error.code === 'backend-failed' : error.code === 'backend-refused' && error.details?.reason === 'context-length';
      });
    }
  });

  test('a prompt that fits, but not with the tokens that are asked for, gets as many as fit', async () => {
    await using bed = await open();
    const prompt = bed.toPrompt(Array<number>(bed.contextTokens - 20).fill(28));
    const { tokenIds, finishReason } = await bed.backend.generate(bed.makeRequest({ ...bed.endless, ...prompt, maxTokens: 400 }));
    assert.ok(tokenIds.length >= 19 && tokenIds.length <= 20, `${tokenIds.length} tokens`);
    assert.equal(finishReason, 'length');
  });

  test('a server that streams exactly delivers each token once as it arrives, with the same result', async () => {
    await using bed = await open();
    const whole = await bed.backend.generate(bed.makeRequest());
    const seen: { ids: number[]; logprobs: number[] } = { ids: [], logprobs: [] };
    let calls = 0;
    const onTokens = (ids: Int32Array, logprobs: Float32Array) => {
      calls += 1;
      seen.ids.push(...ids);
      seen.logprobs.push(...logprobs);
    };
    const streamed = await bed.backend.generate(bed.makeRequest({ onTokens }));
    assert.deepEqual([streamed.tokenIds, streamed.finishReason], [whole.tokenIds, 'stop']);
    if (!isStreamed) return assert.equal(calls, 0);
    assert.ok(calls > 1);
    assert.deepEqual([seen.ids, seen.logprobs], [[...streamed.tokenIds], [...streamed.logprobs]]);
  });

  test('a call that is cut keeps the tokens so far, if the server returns them, and frees the server', async () => {
    await using bed = await open();
    const cut = new AbortController();
    let count = 0;
    const onTokens = (ids: Int32Array) => {
      count += ids.length;
      if (count >= 5) cut.abort();
    };
    if (!isStreamed) void waitForRunning(bed, (running) => running > 0).then(() => cut.abort());
    const partial = await bed.backend.generate(bed.makeRequest({ ...bed.endless, onTokens, cut: cut.signal }));
    assert.equal(partial.finishReason, 'abort');
    await waitForRunning(bed, (running) => running === 0);
    const { length } = partial.tokenIds;
    assert.ok(isStreamed ? length >= 5 && length < 400 : length === 0, `${length} tokens`);
    if (length === 0) return;
    const whole = await bed.backend.generate(bed.makeRequest({ ...bed.endless, maxTokens: length }));
    assert.deepEqual([partial.tokenIds, partial.logprobs.length], [whole.tokenIds, whole.logprobs.length]);
  });

  test('a call that is cut before its first token ends as an abort without tokens', async () => {
    await using bed = await open();
    const generation = await bed.backend.generate(bed.makeRequest({ ...bed.endless, cut: AbortSignal.timeout(1) }));
    assert.deepEqual([generation.finishReason, generation.tokenIds.length], ['abort', 0]);
    await waitForRunning(bed, (running) => running === 0);
  });

  test('an abort ends the call with its reason, and the server stops sampling', async () => {
    await using bed = await open();
    const controller = new AbortController();
    const call = bed.backend.generate(bed.makeRequest({ ...bed.endless, signal: controller.signal }));
    void waitForRunning(bed, (running) => running > 0).then(() => controller.abort(new Error('enough')));
    await assert.rejects(call, /enough/);
    await waitForRunning(bed, (running) => running === 0);
    await assert.rejects(bed.backend.generate(bed.makeRequest({ signal: controller.signal })), /enough/);
  });

  test('many calls at once each get their own reply', async () => {
    await using bed = await open();
    const generate = async (i: number) => {
      const prompt = bed.toPrompt([1, 4093, 198, 1780, 1000 + i]);
      return (await bed.backend.generate(bed.makeRequest({ ...prompt, maxTokens: 2 }))).tokenIds.join();
    };
    const alone: string[] = [];
    for (let i = 0; i < 8; i++) alone.push(await generate(i));
    assert.deepEqual(await Promise.all(alone.map((_, i) => generate(i))), alone);
    assert.ok(new Set(alone).size > 1);
  });
}

async function waitForRunning(bed: ContractBed, isEnough: (running: number) => boolean): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!isEnough(await bed.countRunning())) {
    if (performance.now() > deadline) throw new Error(`the server runs ${await bed.countRunning()} requests after 60 s`);
    await pause(20);
  }
}
