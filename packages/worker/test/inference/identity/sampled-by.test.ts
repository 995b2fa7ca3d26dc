// A turn names the server that sampled it: backends are restarted as other ones between turns, during them and behind a proxy, and every
// logprob is compared with what the named server would have given in the mode that is named.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { request as askHttp, type IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import type { BackendRecord } from '@millrace/engines';
import { Ledger } from '@millrace/model';
import { backendId, sampling } from '@millrace/protocol';
import { FakeBackend, type FakeBackendOptions, FakeClock, fakeLogprob, openFakeTokens } from '@millrace/testkit';
import { openServer } from '../../../../engines/test/open-server.ts';
import { BackendPool } from '../../../src/inference/pool/pool.ts';
import type { SampledTurn } from '../../../src/inference/sampled-turn.ts';
import { Sampler } from '../../../src/inference/sampler.ts';

const tokens = await openFakeTokens();
const signal = new AbortController().signal;
const quiet = { log: silentLog, pace: new Pace() };
const prompt = tokens.encode('<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n');
const temperature = 0.5;

/** The logprobs tell which server gave them: by its weights, and by its mode. */
const before = { version: '0.27.1', weights: 1, isProcessed: true };
const after = { version: '0.32.0', weights: 2, isProcessed: false };

async function openFake(options: Partial<FakeBackendOptions>): Promise<FakeBackend> {
  const fake = new FakeBackend({ policy: ({ turn }) => ({ text: `this is turn ${turn}` }), ...options }, tokens);
  await fake.listen();
  return fake;
}

async function restart(old: FakeBackend, options: Partial<FakeBackendOptions>): Promise<FakeBackend> {
  const port = Number(new URL(old.url).port);
  await old[Symbol.asyncDispose]();
  return await openFake({ ...options, port });
}

function begin(pool: BackendPool, sessionId = 'rollout-1'): Sampler {
  const ledger = new Ledger();
  ledger.appendPrompt({ tokenIds: prompt, text: '', messages: [] });
  return new Sampler({ ledger, pool, sessionId, delayMs: 1 });
}

function sample(sampler: Sampler): Promise<SampledTurn> {
  return sampler.sample({ sampling: sampling.parse({ temperature }), maxTokens: 50, stopTokenIds: [tokens.endOfTurnId], signal });
}

function toRecord(url: string, changes: Partial<BackendRecord> = {}): BackendRecord {
  return { id: backendId.parse('a'), url, dialect: 'vllm', policyVersion: 0, state: 'up', ...changes };
}

/** Rescores the turn on the server that it names. */
function check({ engine, tokenIds, logprobs }: SampledTurn, expected: typeof before | typeof after): void {
  const mode = expected.isProcessed ? 'processed' : 'raw';
  assert.deepEqual([engine.engine_version, engine.logprobs_mode], [expected.version, mode]);
  const source = { weights: expected.weights, temperature: expected.isProcessed ? temperature : 1 };
  for (const [i, id] of tokenIds.entries()) assert.equal(logprobs[i], fakeLogprob(prompt.length + i, id, source));
}

for (const dialect of ['vllm', 'vllm-completions'] as const) {
  test(`${dialect}: a server that is replaced while it is idle is another one for the next turn`, async () => {
    await using first = await openFake(before);
    await using pool = new BackendPool(quiet);
    pool.update([toRecord(first.url, { dialect })]);
    using sampler = begin(pool);
    const one = await sample(sampler);
    check(one, before);
    await using _ = await restart(first, after);
    const two = await sample(sampler);
    check(two, after);
    assert.deepEqual([one.engine.generation, two.engine.generation], [1, 2]);
  });
}

test('a server that is replaced during a turn does not get its tokens recorded under the other name', async () => {
  await using first = await openFake({ ...before, latencyMs: 10 });
  await using pool = new BackendPool(quiet);
  pool.update([toRecord(first.url)]);
  using sampler = begin(pool);
  check(await sample(sampler), before);
  const asked = once(first.events, 'request');
  const turn = sample(sampler);
  await asked;
  await using _ = await restart(first, after);
  check(await turn, after);
});

test('the same server after a restart counts as another, and says the same', async () => {
  await using first = await openFake(before);
  await using pool = new BackendPool(quiet);
  pool.update([toRecord(first.url)]);
  using sampler = begin(pool);
  await sample(sampler);
  await using _ = await restart(first, before);
  const turn = await sample(sampler);
  check(turn, before);
  assert.equal(turn.engine.generation, 2);
});

test('a server that says nothing of its start is known by its other facts', async () => {
  const options = { engine: 'llamacpp', model: 'm' } as const;
  await using first = await openFake({ ...options, version: 'b1', weights: 1 });
  await using pool = new BackendPool(quiet);
  pool.update([toRecord(first.url, { dialect: 'llamacpp' })]);
  using sampler = begin(pool);
  check(await sample(sampler), { version: 'b1', weights: 1, isProcessed: false });
  await using _ = await restart(first, { ...options, version: 'b2', weights: 2 });
  check(await sample(sampler), { version: 'b2', weights: 2, isProcessed: false });
});

/** Passes every request on to the server that `choose` names. Connections to it outlive the server. */
async function openProxy(choose: (incoming: IncomingMessage) => FakeBackend) {
  return await openServer((incoming, response) => {
    const { method, url, headers } = incoming;
    const forward = askHttp(`${choose(incoming).url}${url}`, { method: method ?? 'GET', headers, agent: false }, (reply) => {
      response.writeHead(reply.statusCode ?? 502, reply.headers);
      reply.pipe(response);
    });
    forward.on('error', () => response.writeHead(502).end());
    incoming.pipe(forward);
  });
}

test('a server that is replaced behind a proxy is found at the next proof, though no connection was lost', async () => {
  const clock = new FakeClock();
  await using first = await openFake(before);
  await using second = await openFake(after);
  let current = first;
  await using proxy = await openProxy(() => current);
  await using pool = new BackendPool({ ...quiet, clock });
  pool.update([toRecord(proxy.url)]);
  using sampler = begin(pool);
  check(await sample(sampler), before);
  current = second;
  clock.advance(31_000);
  check(await sample(sampler), after);
});

/** A router in front of these servers. */
async function openRouter(servers: readonly FakeBackend[], choose: (session: string, call: number) => number) {
  let calls = 0;
  return await openProxy(({ headers }) => {
    calls += 1;
    const chosen = servers[choose(`${headers['x-session-id']}`, calls) % servers.length];
    assert.ok(chosen);
    return chosen;
  });
}

const toHash = (text: string) => createHash('sha256').update(text).digest().readUInt32BE();
/** How routers choose, and whether a session stays with its server. */
const routing: Readonly<Record<string, (session: string, call: number) => number>> = {
  'in turns': (_, call) => call,
  'two calls each, in turns': (_, call) => call >> 1,
  'at random': (_, call) => toHash(`call-${call}`),
  'by session': (session) => toHash(session),
};

for (const [how, choose] of Object.entries(routing)) {
  test(`behind a router that chooses ${how}, no turn has a version or a mode of another server`, async () => {
    const clock = new FakeClock();
    await using first = await openFake(before);
    await using second = await openFake(after);
    await using router = await openRouter([first, second], choose);
    await using pool = new BackendPool({ ...quiet, clock });
    pool.update([toRecord(router.url)]);
    for (let at = 0; at < 12; at += 1) {
      using sampler = begin(pool, `rollout-${at}`);
      const { engine } = await tick(clock, sample(sampler));
      assert.deepEqual([engine.engine_version, engine.logprobs_mode], [null, 'unknown'], `turn ${at}`);
      clock.advance(40_000);
    }
  });

  test(`behind a router that chooses ${how}, the mode that the operator declares counts`, async () => {
    await using first = await openFake(before);
    await using second = await openFake({ ...before, weights: 2 });
    await using router = await openRouter([first, second], choose);
    await using pool = new BackendPool(quiet);
    pool.update([toRecord(router.url, { logprobsMode: 'processed' })]);
    using sampler = begin(pool);
    assert.equal((await sample(sampler)).engine.logprobs_mode, 'processed');
  });
}

test('where a session stays with its server, what all servers share is known at once', async () => {
  await using first = await openFake(before);
  await using second = await openFake({ ...before, maxModelLen: 1000 });
  await using router = await openRouter([first, second], routing['by session'] ?? (() => 0));
  await using pool = new BackendPool(quiet);
  pool.update([toRecord(router.url)]);
  using sampler = begin(pool);
  const { engine } = await sample(sampler);
  assert.deepEqual([engine.engine, engine.engine_version, engine.logprobs_mode], ['vllm', before.version, 'processed']);
});

/** Lets time pass, a little in each turn of the event loop, until the work is done. */
async function tick<T>(clock: FakeClock, work: Promise<T>): Promise<T> {
  let isDone = false;
  const onEnd = () => {
    isDone = true;
  };
  work.then(onEnd, onEnd);
  while (!isDone) {
    clock.advance(100);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return await work;
}

test('a mode that a slow server did not show is asked for again', async () => {
  const clock = new FakeClock();
  await using fake = await openFake(before);
  let isSlow = true;
  const held: (() => void)[] = [];
  await using slow = await openServer((incoming, response) => {
    const { method, url, headers } = incoming;
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const body = Buffer.concat(chunks);
      // The request that shows the mode is never answered while it is slow.
      if (isSlow && body.includes('probe-logprobs')) return held.push(() => response.destroy());
      const forward = askHttp(`${fake.url}${url}`, { method: method ?? 'GET', headers, agent: false }, (reply) => {
        response.writeHead(reply.statusCode ?? 502, reply.headers);
        reply.pipe(response);
      });
      return forward.end(body);
    });
  });
  await using pool = new BackendPool({ ...quiet, clock });
  pool.update([toRecord(slow.url)]);
  using sampler = begin(pool);
  assert.equal((await tick(clock, sample(sampler))).engine.logprobs_mode, 'unknown');
  assert.ok(held.length > 0);
  isSlow = false;
  for (const hang of held) hang();
  let mode = 'unknown';
  for (let turn = 0; turn < 20 && mode === 'unknown'; turn += 1) {
    mode = (await tick(clock, sample(sampler))).engine.logprobs_mode;
  }
  assert.equal(mode, 'processed');
});
