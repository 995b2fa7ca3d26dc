// A sampler while the weights change: it waits at the gate, keeps the sampled tokens when it is cut, continues from exactly these
// ids, and every part names the weights that sampled it.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { Deadline } from '@millrace/base/deadline';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import type { BackendRecord, Generation } from '@millrace/engines';
import { Ledger } from '@millrace/model';
import { backendId, type Dialect, RolloutError, sampling } from '@millrace/protocol';
import { FakeBackend, type FakeBackendOptions, FakeClock, fakeLogprob, openFakeTokens, scriptedFaults } from '@millrace/testkit';
import { PolicyGate } from '../../src/inference/policy-gate.ts';
import { BackendPool } from '../../src/inference/pool/pool.ts';
import type { SampledTurn } from '../../src/inference/sampled-turn.ts';
import { Sampler, type SamplerOptions } from '../../src/inference/sampler.ts';

const tokens = await openFakeTokens();
const said = 'one two three four five six seven eight nine ten eleven twelve';
const turnIds = [...tokens.encode(said), tokens.endOfTurnId];
const never = new AbortController().signal;
const quiet = { log: silentLog, pace: new Pace() };

async function openFake(options: Partial<FakeBackendOptions> = {}): Promise<FakeBackend> {
  const fake = new FakeBackend({ policy: () => ({ text: said }), ...options }, tokens);
  await fake.listen();
  return fake;
}

function toRecord(id: string, { url }: FakeBackend, changes: Partial<BackendRecord> = {}): BackendRecord {
  return { id: backendId.parse(id), url, dialect: 'vllm', policyVersion: 0, state: 'up', ...changes };
}

class Bed implements AsyncDisposable {
  readonly gate: PolicyGate;
  readonly pool = new BackendPool(quiet);
  readonly sampler: Sampler;
  readonly parts: SampledTurn[] = [];
  readonly idle = Promise.withResolvers<void>();
  #pauses = 0;
  #flushes = 0;

  constructor(options: Partial<SamplerOptions> = {}) {
    this.gate = new PolicyGate({ onIdle: () => this.idle.resolve() });
    const ledger = new Ledger();
    ledger.appendPrompt({ tokenIds: tokens.encode('<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n'), text: '', messages: [] });
    this.sampler = new Sampler({ ledger, pool: this.pool, gate: this.gate, sessionId: 'r', delayMs: 1, ...options });
    this.resume(0);
  }

  pause(mode: 'wait' | 'abort'): void {
    this.#pauses += 1;
    this.gate.update({ state: 'pausing', mode, pause: this.#pauses, flushes: this.#flushes, policyVersion: 0 });
  }

  resume(policyVersion: number, { isFlushed = true } = {}): void {
    this.#flushes += Number(isFlushed);
    this.gate.update({ state: 'running', pause: this.#pauses, flushes: this.#flushes, policyVersion });
  }

  /** Samples one turn into the ledger, part by part. */
  async sample({ maxTokens = 50, signal = never } = {}): Promise<SampledTurn> {
    const keep = (part: SampledTurn) => {
      this.parts.push(part);
      this.sampler.ledger.appendSampled({ ...part, text: '', messages: [] });
    };
    const options = { sampling: sampling.parse({}), maxTokens, stopTokenIds: [tokens.endOfTurnId], signal };
    const last = await this.sampler.sample({ ...options, onPart: keep });
    keep(last);
    return last;
  }

  /** Every token is the policy's next one, with the logprob of the weights that its part names. */
  check(ids: readonly number[] = turnIds): void {
    assert.deepEqual(
      this.parts.flatMap(({ tokenIds }) => [...tokenIds]),
      ids,
    );
    let at = this.sampler.ledger.segments[0]?.tokenIds.length ?? 0;
    for (const { tokenIds, logprobs, policyVersions } of this.parts) {
      for (const [i, id] of tokenIds.entries()) assert.equal(logprobs[i], fakeLogprob(at + i, id, policyVersions.first));
      at += tokenIds.length;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.sampler[Symbol.dispose]();
    await this.pool[Symbol.asyncDispose]();
  }
}

test('a pause that waits lets the call end; the next call waits, uncharged', async () => {
  const clock = new FakeClock();
  using deadline = new Deadline('run', 10_000, clock);
  await using fake = await openFake();
  await using bed = new Bed({ clock, uncharged: (wait) => deadline.uncharged(wait), refund: (ms) => deadline.refund(ms) });
  bed.pool.update([toRecord('a', fake)]);
  fake.events.once('request', () => bed.pause('wait'));
  assert.equal((await bed.sample()).finishReason, 'stop');
  await bed.idle.promise;
  const next = bed.sample();
  await new Promise(setImmediate);
  clock.advance(1_000_000);
  assert.equal(fake.generations, 1);
  bed.pool.update([toRecord('a', fake, { policyVersion: 1 })]);
  bed.resume(1);
  assert.deepEqual((await next).policyVersions, { first: 1, last: 1 });
  assert.equal(deadline.chargedMs, 0);
});

for (const dialect of ['vllm', 'vllm-completions', 'sglang'] satisfies Dialect[]) {
  test(`${dialect}: a turn that was cut continues from its partial tokens under the new weights`, async () => {
    await using fake = await openFake({ tokenMs: 2 });
    await using bed = new Bed();
    bed.pool.update([toRecord('a', fake, { dialect })]);
    fake.events.on('tokens', (count: number) => count >= 9 && bed.parts.length === 0 && bed.gate.isOpen && bed.pause('abort'));
    const turn = bed.sample();
    await bed.idle.promise;
    fake.setWeights(5);
    bed.pool.update([toRecord('a', fake, { dialect, policyVersion: 5 })]);
    bed.resume(5);
    const last = await turn;
    bed.check();
    assert.deepEqual(
      bed.parts.map(({ finishReason, policyVersions, retries, backend }) => [finishReason, policyVersions.last, retries, backend]),
      [
        ['abort', 0, 0, 'a'],
        ['stop', 5, 0, 'a'],
      ],
    );
    assert.equal(fake.requests[1]?.maxTokens, 50 - (bed.parts[0]?.tokenIds.length ?? 0));
    assert.ok(last.tokenIds.length < turnIds.length);
    assert.deepEqual(
      bed.sampler.ledger.segments.map(({ kind, turn: number }) => [kind, number]),
      [
        ['prompt', 0],
        ['sampled', 1],
        ['sampled', 1],
      ],
    );
  });
}

test('if a server returns nothing of a cut turn, the turn is sampled again, and the retry is counted', async () => {
  await using fake = await openFake({ tokenMs: 2 });
  await using bed = new Bed();
  bed.pool.update([toRecord('a', fake, { dialect: 'llamacpp' })]);
  fake.events.on('tokens', (count: number) => count === 5 && fake.generations <= 5 && bed.pause('abort'));
  const turn = bed.sample();
  // More often than a call may fail: a pause is not a failure.
  for (let swap = 1; swap <= 5; swap++) {
    await once(fake.events, 'tokens');
    while (bed.gate.isOpen || bed.gate.report.generating > 0) await new Promise(setImmediate);
    fake.setWeights(swap);
    bed.pool.update([toRecord('a', fake, { dialect: 'llamacpp', policyVersion: swap })]);
    bed.resume(swap);
  }
  assert.equal((await turn).retries, 5);
  bed.check();
});

for (const dialect of ['vllm', 'sglang'] satisfies Dialect[]) {
  test(`${dialect}: tokens that a server returns when it aborts on its own are kept and continued`, async () => {
    await using fake = await openFake({ faults: scriptedFaults(['abort', 'abort']) });
    await using bed = new Bed();
    bed.pool.update([toRecord('a', fake, { dialect })]);
    assert.equal((await bed.sample()).retries, 0);
    assert.deepEqual(
      bed.parts.map(({ finishReason }) => finishReason),
      ['abort', 'abort', 'stop'],
    );
    bed.check();
  });
}

test('a turn that was cut after its last token, or at its limit, is complete: nothing is sampled after it', async () => {
  for (const [maxTokens, finishReason] of [
    [2, 'length'],
    [3, 'stop'],
  ] as const) {
    const generate = async (): Promise<Generation> => {
      const tokenIds = Int32Array.of(1, 2, tokens.endOfTurnId).subarray(0, maxTokens);
      return { tokenIds, logprobs: new Float32Array(maxTokens), finishReason: 'abort' };
    };
    await using pool = new BackendPool({ ...quiet, open: ({ id, policyVersion }) => ({ id, policyVersion, logprobs: 'raw', generate }) });
    pool.update([{ id: backendId.parse('a'), url: 'http://a', dialect: 'vllm', policyVersion: 0, state: 'up' }]);
    await using bed = new Bed({ pool });
    assert.equal((await bed.sample({ maxTokens })).finishReason, finishReason);
    assert.equal(bed.parts.length, 1);
  }
});

test('an abort without a token counts as a failed call', async () => {
  await using fake = await openFake({ faults: () => 'abort', policy: () => ({ tokenIds: new Int32Array(0) }) });
  await using bed = new Bed();
  bed.pool.update([toRecord('a', fake)]);
  await assert.rejects(bed.sample(), (error) => error instanceof RolloutError && error.code === 'backend-failed');
  assert.equal(fake.generations, 4);
});

test('a rollout may change its backend after the caches were flushed; otherwise it stays', async () => {
  await using a = await openFake();
  await using b = await openFake();
  await using bed = new Bed();
  bed.pool.update([toRecord('a', a)]);
  assert.equal((await bed.sample()).backend, 'a');
  using _crowd = await bed.pool.acquire({ signal: never });
  bed.pool.update([toRecord('a', a), toRecord('b', b)]);
  bed.pause('wait');
  bed.resume(1, { isFlushed: false });
  assert.equal((await bed.sample()).backend, 'a');
  bed.pause('wait');
  bed.resume(2);
  const { backend } = await bed.sample();
  assert.deepEqual([backend, bed.pool.inFlight()], ['b', { a: 1, b: 1 }]);
});

test('a rollout that waits for a backend does not delay a pause', async () => {
  await using bed = new Bed();
  const turn = bed.sample();
  await new Promise(setImmediate);
  bed.pause('wait');
  await bed.idle.promise;
  await using fake = await openFake();
  bed.pool.update([toRecord('a', fake)]);
  await new Promise(setImmediate);
  assert.equal(fake.generations, 0);
  bed.resume(1);
  assert.equal((await turn).backend, 'a');
});

test('a rollout whose first token is too old fails as too-stale before its next call', async () => {
  await using fake = await openFake();
  await using bed = new Bed({ maxStaleness: 2 });
  bed.pool.update([toRecord('a', fake)]);
  await bed.sample();
  bed.resume(2);
  await bed.sample();
  bed.pause('wait');
  const next = bed.sample();
  bed.resume(3);
  await assert.rejects(
    next,
    (error) => error instanceof RolloutError && error.code === 'too-stale' && /at policy version 0, 3 behind/.test(error.message),
  );
  assert.equal(fake.generations, 2);
});

test('a cancel ends the turn at once, at the closed gate and during a stream', async () => {
  await using fake = await openFake({ tokenMs: 2 });
  await using bed = new Bed();
  bed.pool.update([toRecord('a', fake)]);
  const [waiting, streaming] = [new AbortController(), new AbortController()];
  bed.pause('wait');
  const first = bed.sample({ signal: waiting.signal });
  waiting.abort(new Error('cancelled at the gate'));
  await assert.rejects(first, /cancelled at the gate/);
  bed.resume(0);
  fake.events.once('tokens', () => streaming.abort(new Error('cancelled in the stream')));
  await assert.rejects(bed.sample({ signal: streaming.signal }), /cancelled in the stream/);
  assert.equal(bed.gate.report.generating, 0);
  while (fake.inFlight > 0) await new Promise(setImmediate);
});

test('tokens are counted while a turn is streamed, about once a second, and each once', async () => {
  const clock = new FakeClock();
  await using fake = await openFake({ tokenMs: 1, policy: () => ({ text: said.repeat(20) }) });
  await using pool = new BackendPool({ ...quiet, clock });
  await using bed = new Bed({ pool, clock });
  pool.update([toRecord('a', fake)]);
  const seen: number[] = [];
  fake.events.on('tokens', () => {
    seen.push(pool.traffic.sampledTokens);
    clock.advance(600);
  });
  const { tokenIds } = await bed.sample({ maxTokens: 400 });
  const steps = new Set(seen);
  assert.ok(steps.size > 1 && steps.size <= 1 + Math.ceil((600 * seen.length) / 1000), `${[...steps]} in ${seen.length} events`);
  assert.ok(Math.max(...seen) < tokenIds.length);
  assert.equal(pool.traffic.sampledTokens, tokenIds.length);
  assert.equal(pool.traffic.take().counts.get(backendId.parse('a'))?.sampled_tokens, tokenIds.length);
});

for (const dialect of ['vllm', 'sglang'] as const satisfies readonly Dialect[]) {
  test(`${dialect}: a turn kept over an update in place has one part for each version, each with its own weights`, async () => {
    await using fake = await openFake({ tokenMs: 2, weights: 3, weightVersion: '3' });
    await using bed = new Bed();
    bed.pool.update([toRecord('a', fake, { dialect, policyVersion: 3 })]);
    fake.events.on('tokens', (count: number) => {
      if (count !== 5) return;
      fake.setWeights(4);
      fake.setWeightVersion('4');
    });
    await bed.sample();
    assert.deepEqual(
      bed.parts.map(({ policyVersions, tokenIds, finishReason }) => [policyVersions, tokenIds.length, finishReason]),
      [
        [{ first: 3, last: 3 }, 5, 'abort'],
        [{ first: 4, last: 4 }, turnIds.length - 5, 'stop'],
      ],
    );
    bed.check();
    assert.deepEqual(new Set(bed.sampler.ledger.segments.slice(1).map(({ turn }) => turn)), new Set([1]));
  });
}

test('a turn that is cut after an update in place keeps a part for each version, and continues', async () => {
  await using fake = await openFake({ tokenMs: 2, weights: 3, weightVersion: '3' });
  await using bed = new Bed();
  bed.pool.update([toRecord('a', fake, { policyVersion: 3 })]);
  fake.events.on('tokens', (count: number) => {
    if (bed.parts.length > 0) return;
    if (count === 4) {
      fake.setWeights(4);
      fake.setWeightVersion('4');
    }
    if (count === 7) bed.pause('abort');
  });
  const turn = bed.sample();
  await bed.idle.promise;
  bed.resume(4);
  await turn;
  assert.deepEqual(
    bed.parts.map(({ policyVersions: { first, last } }) => [first, last]),
    [
      [3, 3],
      [4, 4],
      [4, 4],
    ],
  );
  assert.equal(bed.parts[0]?.tokenIds.length, 4);
  bed.check();
});
