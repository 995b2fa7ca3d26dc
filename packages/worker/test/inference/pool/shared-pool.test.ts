// Pools that share a store: they balance like one, break and recover backends for each other, and lose no waiting rollout.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import type { Backend, BackendRecord, GenerateRequest } from '@millrace/engines';
import { type BackendId, backendId, definedOf, RolloutError, sampling, workerId } from '@millrace/protocol';
import { type Claim, openSqliteStore, type Store } from '@millrace/store';
import {
  FakeBackend,
  type FakeBackendOptions,
  FakeClock,
  makeRollout,
  makeTempFolder,
  moveUpTo,
  openFakeTokens,
  scriptedFaults,
} from '@millrace/testkit';
import { openServer } from '../../../../engines/test/open-server.ts';
import { PolicyGate } from '../../../src/inference/policy-gate.ts';
import type { BackendLease } from '../../../src/inference/pool/lease.ts';
import { BackendPool } from '../../../src/inference/pool/pool.ts';
import type { PoolOptions } from '../../../src/inference/pool/pool-options.ts';
import { TurnReporter } from '../../../src/pipeline/turn-reporter.ts';

const { signal } = new AbortController();
const tokens = await openFakeTokens();
const a = backendId.parse('a');
const b = backendId.parse('b');

class Bed implements AsyncDisposable {
  readonly clock: FakeClock;
  readonly stack = new AsyncDisposableStack();
  readonly store: Store;
  readonly pools: BackendPool[] = [];

  private constructor(store: Store, clock: FakeClock) {
    this.store = store;
    this.clock = clock;
  }

  static async open(): Promise<Bed> {
    const folder = await makeTempFolder('pool');
    const clock = new FakeClock();
    const store = await openSqliteStore({ path: join(folder.path, 'store.db'), clock, log: silentLog });
    const bed = new Bed(store, clock);
    bed.stack.use(folder);
    bed.stack.use(store);
    return bed;
  }

  addPool(options: Partial<PoolOptions> = {}): BackendPool {
    const shared = { log: silentLog, pace: new Pace(), placements: this.store, clock: this.clock };
    const pool = this.stack.use(new BackendPool({ ...shared, breakAfter: 3, ...options }));
    this.pools.push(pool);
    return pool;
  }

  /** As workers do after an event of a backend. */
  async refresh(): Promise<void> {
    for (const pool of this.pools) pool.update(await this.store.backends());
  }

  async join(...records: readonly BackendRecord[]): Promise<void> {
    for (const record of records) await this.store.joinBackend(record);
    await this.refresh();
  }

  async run(count: number, changes: Record<string, unknown> = {}, host = 'here'): Promise<readonly Claim[]> {
    const worker = workerId.parse(`w${this.clock.now()}-${count}-${host}`);
    await this.store.registerWorker({ id: worker, host, pid: 1 }, { leaseMs: 1e9 });
    const ids = Array.from({ length: count }, (_, index) => `${worker}-${index}`);
    await this.store.submit(
      ids.map((id) => makeRollout(id, changes)),
      { maxQueued: 1e6 },
    );
    const claims = await this.store.claim(worker, count);
    for (const claim of claims) await moveUpTo(this.store, claim, 'run');
    return claims;
  }

  async loads(): Promise<Record<string, number>> {
    return Object.fromEntries((await this.store.backendLoads()).map(({ id, inFlight }) => [id, inFlight]));
  }

  /** Lets time pass until the store has the backend as broken or not. */
  async until(id: BackendId, isBroken: boolean): Promise<void> {
    for (;;) {
      const found = (await this.store.backends()).find((backend) => backend.id === id);
      if ((found?.health?.brokenAtMs !== undefined) === isBroken) return;
      this.clock.advance(1000);
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stack.disposeAsync();
  }
}

function toRecord(id: BackendId, url = `http://127.0.0.1:1/${id}`): BackendRecord {
  return { id, url, dialect: 'vllm', policyVersion: 0, state: 'up' };
}

async function openFake(options: Partial<FakeBackendOptions> = {}): Promise<FakeBackend> {
  const fake = new FakeBackend({ policy: () => ({ text: 'yes' }), ...options }, tokens);
  await fake.listen();
  return fake;
}

const request: GenerateRequest = {
  promptJson: Buffer.from('1,2,3'),
  promptTokens: 3,
  sampling: sampling.parse({}),
  maxTokens: 8,
  stopTokenIds: [],
  sessionId: 's',
  requestId: 'q',
  signal,
};

/** One call as a sampler makes it. */
async function call(lease: BackendLease): Promise<'answered' | 'failed' | 'gone'> {
  const { backend } = lease;
  if (!backend) return 'gone';
  const started = lease.startCall();
  try {
    started.report({ kind: 'answered', promptTokens: request.promptTokens, generation: await backend.generate(request) });
    return 'answered';
  } catch (error) {
    started.report({ kind: 'failed', error: error instanceof RolloutError ? error : assert.fail(String(error)) });
    return 'failed';
  }
}

test('ten pools on one store balance like one', async () => {
  await using bed = await Bed.open();
  for (let index = 0; index < 10; index++) bed.addPool();
  await bed.join(toRecord(a), toRecord(b), toRecord(backendId.parse('c')));
  const claims = await bed.run(30);
  await Promise.all(claims.map((rollout, index) => bed.pools[index % 10]?.acquire({ signal, rollout })));
  assert.deepEqual(await bed.loads(), { a: 10, b: 10, c: 10 });
});

test('a backend that fails several calls in a row is broken for every pool, and recovers by a probe', async () => {
  await using bed = await Bed.open();
  await using sick = await openFake({ faults: scriptedFaults(['http-500', 'reset', 'http-500', 'garbage']) });
  await using well = await openFake();
  const [first, second] = [bed.addPool(), bed.addPool()];
  await bed.join(toRecord(a, sick.url), toRecord(b, well.url));
  const [one, two, three] = await bed.run(3);
  assert.ok(one && two && three);
  const lease = await first.acquire({ signal, rollout: one });
  assert.equal(lease.id, 'a');
  for (let index = 0; index < 3; index++) assert.equal(await call(lease), 'failed');
  await bed.until(a, true);
  await bed.refresh();
  assert.equal(lease.backend, undefined, 'nothing more is sent to it');
  const moved = await first.move(lease, { signal, reason: 'failed' });
  const other = await second.acquire({ signal, rollout: two });
  assert.deepEqual([moved.id, other.id], ['b', 'b']);
  // The first probe meets the fourth fault, the next one succeeds.
  await bed.until(a, false);
  assert.ok(sick.generations >= 5);
  await bed.refresh();
  assert.equal((await second.acquire({ signal, rollout: three })).id, 'a');
  assert.ok((await bed.store.backends())[0]?.health?.error, 'the last error is still shown');
});

test('rollouts wait while all backends are broken, and continue when one recovers', async () => {
  await using bed = await Bed.open();
  await using fake = await openFake({ faults: scriptedFaults(['reset', 'reset', 'reset']) });
  const pool = bed.addPool();
  await bed.join(toRecord(a, fake.url));
  const [one, two] = await bed.run(2);
  assert.ok(one && two);
  const lease = await pool.acquire({ signal, rollout: one });
  for (let index = 0; index < 3; index++) await call(lease);
  await bed.until(a, true);
  await bed.refresh();
  const waits = [pool.move(lease, { signal, reason: 'failed' }), pool.acquire({ signal, rollout: two })];
  await bed.until(a, false);
  await bed.refresh();
  for (const next of await Promise.all(waits)) assert.equal(await call(next), 'answered');
});

test('a busy backend is left alone for as long as it asks, and is neither broken nor left', async () => {
  await using bed = await Bed.open();
  const busy = new RolloutError('backend-failed', 'answered 429', { details: { reason: 'busy', retry_after_ms: 7000 } });
  let isBusy = true;
  const open = ({ id }: BackendRecord): Backend => ({
    id,
    policyVersion: 0,
    logprobs: 'raw',
    generate: async () => {
      if (isBusy) throw busy;
      return { tokenIds: Int32Array.of(1), logprobs: Float32Array.of(-1), finishReason: 'stop' };
    },
  });
  const pool = bed.addPool({ open, breakAfter: 1 });
  await bed.join(toRecord(a), toRecord(b));
  const [rollout] = await bed.run(1);
  assert.ok(rollout);
  const lease = await pool.acquire({ signal, rollout });
  assert.equal(await call(lease), 'failed');
  let isAsked = false;
  const again = pool.move(lease, { signal, reason: 'failed' }).finally(() => {
    isAsked = true;
  });
  bed.clock.advance(6999);
  await bed.store.backends();
  assert.equal(isAsked, false);
  bed.clock.advance(1);
  assert.equal(await again, lease);
  isBusy = false;
  assert.equal(await call(lease), 'answered');
  assert.equal((await bed.store.backends())[0]?.health, undefined);
  assert.deepEqual(pool.traffic.take().counts.get(a)?.errors, { busy: 1 });
});

test('of two workers with more contexts than a KV cache keeps, the one with the oldest goes, until its rollout leaves', async () => {
  await using bed = await Bed.open();
  await bed.join(toRecord(a));
  await bed.store.noteProbe(a, { atMs: 1, cacheTokens: 100 });
  const pools = [bed.addPool({ holdForCache: true }), bed.addPool({ holdForCache: true })];
  await bed.refresh();
  const claims = [...(await bed.run(1)), ...(await bed.run(2))];
  const leases = await Promise.all(claims.map((rollout, index) => pools[Math.min(1, index)]?.acquire({ signal, rollout, tokens: 60 })));
  const read = async () => {
    for (const [index, pool] of pools.entries()) {
      pool.updateLoads(await bed.store.backendLoads());
      await pool.divideCaches((caches) => bed.store.oldestOn(claims[index]?.worker ?? assert.fail(), caches));
    }
  };
  const ask = (index: number) => leases[index]?.admit({ tokens: 60, rank: index }, signal);
  assert.equal(ask(0), undefined);
  assert.equal(ask(1), undefined, 'until it knows of the other worker, it takes the cache for its own');
  leases[1]?.noteTurn({ tokens: 60 });
  await read();
  const wait = ask(1);
  assert.ok(wait);
  assert.deepEqual(
    pools.map((pool) => pool.heldForCache()),
    [{ a: 0 }, { a: 1 }],
  );
  const [first] = claims;
  if (first) await bed.store.release(first);
  await read();
  bed.clock.advance(50);
  await wait;
  assert.ok(ask(2), 'only one of its two fits');
});

test('a rollout in a long tool leaves its room to one of another worker, until it asks again', async () => {
  await using bed = await Bed.open();
  await bed.join(toRecord(a));
  await bed.store.noteProbe(a, { atMs: 1, cacheTokens: 10_000 });
  const pools = [bed.addPool({ holdForCache: true }), bed.addPool({ holdForCache: true })] as const;
  await bed.refresh();
  const claims = [...(await bed.run(1)), ...(await bed.run(2))];
  const leases = await Promise.all(pools.map((pool, index) => pool.acquire(definedOf({ signal, rollout: claims[index], tokens: 6000 }))));
  const reporters = pools.map(({ traffic }) => new TurnReporter({ store: bed.store, clock: bed.clock, traffic }));
  const ask = (index: number) => leases[index]?.admit({ tokens: 6000, rank: index }, signal);
  const endTurn = (index: number) => {
    leases[index]?.noteTurn({ tokens: 6000, firstTokenMs: 1000 });
    const [claim, counts] = [claims[index] ?? assert.fail(), { turn: 1, sampledTokens: 1, contextTokens: 6000 }];
    reporters[index]?.add(claim, claim.worker, { ...counts, modelMs: 1, toolMs: 0, calls: [], repeats: 1 });
  };
  const tick = async () => {
    for (const [index, pool] of pools.entries()) {
      pool.updateLoads(await bed.store.backendLoads());
      reporters[index]?.noteAsleep(pool.asleep());
      await reporters[index]?.flush(claims[index]?.worker ?? assert.fail());
      await pool.divideCaches((caches) => bed.store.oldestOn(claims[index]?.worker ?? assert.fail(), caches));
    }
  };
  const contexts = async () => (await bed.store.backendLoads()).map(({ tokens }) => tokens);
  for (const index of [0, 1]) assert.equal(ask(index), undefined, 'until it knows of the other worker, it takes the cache for its own');
  for (const index of [0, 1]) endTurn(index);
  await tick();
  await tick();
  const wait = ask(1);
  assert.ok(wait, 'the older one has the room');
  // The engine computes 6 tokens in a millisecond, so a tool of 2 s is longer than its context is worth.
  bed.clock.advance(2000);
  await tick();
  await tick();
  assert.deepEqual(await contexts(), [6000], 'only that of the one that waits');
  bed.clock.advance(1000);
  await wait;
  ask(0);
  await tick();
  assert.deepEqual(await contexts(), [12_000]);
});

test('a rollout leaves a far busier backend at the start of a turn, and does not come back', async () => {
  await using bed = await Bed.open();
  const routing = { affinityBound: 1.25, spillFactor: 2, spillRollouts: 4 };
  const pool = bed.addPool({ routing, spillTurns: 2 });
  await bed.join(toRecord(a));
  const leases = await Promise.all((await bed.run(12)).map((rollout) => pool.acquire({ signal, rollout })));
  await bed.join(toRecord(b));
  const turn = async () => {
    pool.updateLoads(await bed.store.backendLoads());
    for (const [index, lease] of leases.entries()) {
      lease.noteEnd('answered');
      if (pool.shouldMove(lease)) leases[index] = await pool.move(lease, { signal, reason: 'busy' });
    }
  };
  await turn();
  assert.deepEqual(await bed.loads(), { a: 12 }, 'not in its first turns');
  for (let index = 0; index < 5; index++) await turn();
  assert.deepEqual(await bed.loads(), { a: 8, b: 4 });
  assert.deepEqual(pool.inFlight(), { a: 8, b: 4 });
});

test('flushed caches let a rollout be placed again, new weights alone do not; a session is finished only on the backend that it leaves', async () => {
  await using bed = await Bed.open();
  await using fake = await openFake();
  const pool = bed.addPool();
  await bed.join(toRecord(a, fake.url));
  const [rollout, other] = await bed.run(2);
  assert.ok(rollout && other);
  const finished: string[] = [];
  const ended = Promise.withResolvers<void>();
  fake.events.on('miss', (path: string) => {
    finished.push(path);
    ended.resolve();
  });
  const lease = await pool.acquire({ signal, rollout });
  assert.equal(await pool.move(lease, { signal, reason: 'flushed' }), lease);
  await pool.acquire({ signal, rollout: other });
  await bed.join(toRecord(b));
  await bed.join({ ...toRecord(a, fake.url), policyVersion: 1 });
  assert.equal(pool.shouldMove(lease), false);
  assert.equal((await pool.move(lease, { signal, reason: 'flushed' })).id, 'b');
  await ended.promise;
  assert.equal(finished.length, 1);
});

test('the end of a rollout finishes its session on a router that has the route', async () => {
  await using bed = await Bed.open();
  await using fake = await openFake();
  const pool = bed.addPool();
  await bed.join(toRecord(a, fake.url));
  const [one, two] = await bed.run(2);
  assert.ok(one && two);
  const finished: string[] = [];
  const ended = Promise.withResolvers<void>();
  fake.events.on('miss', (path: string) => {
    finished.push(path);
    ended.resolve();
  });
  (await pool.acquire({ signal, rollout: one }))[Symbol.dispose]();
  await ended.promise;
  assert.deepEqual(finished, [`POST /finish_session?session_id=${encodeURIComponent(one.id)}`]);
});

test('an engine that answers by itself is never asked to finish a session, which its log would show as a failed request', async () => {
  await using bed = await Bed.open();
  await using fake = await openFake();
  const pool = bed.addPool();
  const record = (probe: BackendRecord['probe']) => ({ ...toRecord(a, fake.url), ...(probe ? { probe } : {}) });
  await bed.join(record({ instance: '1760000000.5' }));
  const [one, two] = await bed.run(2);
  (await pool.acquire({ signal, rollout: one ?? assert.fail() }))[Symbol.dispose]();
  await bed.join(record({ instance: '1760000000.5', isSeveral: true }));
  const missed = once(fake.events, 'miss');
  (await pool.acquire({ signal, rollout: two ?? assert.fail() }))[Symbol.dispose]();
  const [path] = await missed;
  assert.deepEqual([path, fake.misses], [`POST /finish_session?session_id=${encodeURIComponent(two?.id ?? '')}`, 1]);
});

test('a server without the route is asked to finish a session only once', async () => {
  await using bed = await Bed.open();
  await using fake = await openFake();
  const pool = bed.addPool();
  await bed.join(toRecord(a, fake.url));
  const claims = await bed.run(3);
  const leases = await Promise.all(claims.map((rollout) => pool.acquire({ signal, rollout })));
  const missed = once(fake.events, 'miss');
  leases[0]?.[Symbol.dispose]();
  await missed;
  // Its reply comes before that of any later request on the same connection.
  for (const lease of leases.slice(1)) assert.equal(await call(lease), 'answered');
  for (const lease of leases.slice(1)) lease[Symbol.dispose]();
  assert.equal(await call(await pool.acquire({ signal, rollout: claims[0] ?? assert.fail() })), 'answered');
  assert.equal(fake.misses, 1);
});

test('a backend that joins as broken recovers once it works, and then what its server says is known', async () => {
  await using bed = await Bed.open();
  await using fake = await openFake();
  bed.addPool();
  await bed.store.joinBackend({ ...toRecord(a, fake.url), error: 'connect ECONNREFUSED' });
  await bed.refresh();
  const isBroken = async () => (await bed.store.backends())[0]?.health?.brokenAtMs !== undefined;
  assert.ok(await isBroken());
  for (; await isBroken(); await setTimeout(20)) bed.clock.advance(50);
  const [record] = await bed.store.backends();
  assert.deepEqual([record?.probe?.engine, record?.probe?.contextTokens], ['vllm', 131_072]);
});

test("a backend whose tokenizer is not the service's stays broken, and says so, until it serves the right model", async () => {
  await using bed = await Bed.open();
  await using fake = await openFake();
  const tokenizer = [{ text: 'hello', tokenIds: [1, 2, 3] }];
  bed.addPool({ tokenizer });
  await bed.store.joinBackend({ ...toRecord(a, fake.url), error: 'connect ECONNREFUSED' });
  await bed.refresh();
  const read = async () => (await bed.store.backends())[0] ?? assert.fail();
  for (; (await read()).probe?.tokenizer === undefined; await setTimeout(20)) bed.clock.advance(50);
  for (; !/tokenizer/.test((await read()).health?.error ?? ''); await setTimeout(20)) bed.clock.advance(50);
  assert.match((await read()).health?.error ?? '', /not the service's: it encodes "hello" as \[\d+\], and the service as \[1, 2, 3\]/);
  assert.ok((await read()).health?.brokenAtMs !== undefined);
  tokenizer.splice(0, 1, { text: 'hello', tokenIds: [...tokens.encode('hello')] });
  for (; (await read()).health?.brokenAtMs !== undefined; await setTimeout(20)) bed.clock.advance(100);
  const { probe } = await read();
  assert.deepEqual([probe?.tokenizer, probe?.tokenizerReason], ['same', undefined]);
});

test('a broken backend is not sampled from while the policy is paused', async () => {
  await using bed = await Bed.open();
  await using fake = await openFake();
  const gate = new PolicyGate();
  gate.update({ state: 'paused', mode: 'wait', pause: 1, flushes: 0, policyVersion: 0 });
  bed.addPool().useGate(gate);
  await bed.store.joinBackend({ ...toRecord(a, fake.url), error: 'connect ECONNREFUSED' });
  await bed.refresh();
  const isBroken = async () => (await bed.store.backends())[0]?.health?.brokenAtMs !== undefined;
  for (let i = 0; i < 40; i++, await setTimeout(5)) bed.clock.advance(50);
  assert.deepEqual([await isBroken(), fake.generations, gate.report.generating], [true, 0, 0]);
  gate.update({ state: 'running', pause: 1, flushes: 0, policyVersion: 0 });
  for (; await isBroken(); await setTimeout(20)) bed.clock.advance(50);
  assert.deepEqual([fake.generations, gate.report.generating], [1, 0]);
});

test('a backend that answers 404 to every call is broken', async () => {
  await using bed = await Bed.open();
  await using fake = await openFake();
  const pool = bed.addPool({ breakAfter: 2 });
  await bed.join(toRecord(a, `${fake.url}/nowhere`));
  const [rollout = assert.fail()] = await bed.run(1);
  const lease = await pool.acquire({ signal, rollout });
  for (let i = 0; i < 2; i++) assert.equal(await call(lease), 'failed');
  await bed.until(a, true);
});

test('a 503 without Retry-After is busy: it breaks a backend only if its health check fails too', async () => {
  await using bed = await Bed.open();
  const message = 'The engine is currently busy and cannot accept new requests. Please try again later or on a different instance.';
  const full = { error: { message, type: 'Service Unavailable', param: null, code: 503 } };
  const openFull = (healthStatus: number) =>
    openServer(({ url }, response) => response.writeHead(url === '/health' ? healthStatus : 503).end(JSON.stringify(full)));
  await using queue = await openFull(200);
  await using proxy = await openFull(503);
  const pool = bed.addPool({ breakAfter: 1 });
  await bed.join(toRecord(a, queue.url), toRecord(b, proxy.url));
  const leases = await Promise.all((await bed.run(2)).map((rollout) => pool.acquire({ signal, rollout })));
  for (const lease of leases) {
    assert.equal(await call(lease), 'failed');
    assert.equal(lease.last.outcome, 'busy');
  }
  await bed.until(b, true);
  assert.equal((await bed.store.backends())[0]?.health?.brokenAtMs, undefined);
});

test('a silent backend is broken only if its health check fails too', async () => {
  await using bed = await Bed.open();
  await using slow = await openFake();
  const gone = await openFake();
  const silence = new RolloutError('backend-failed', 'nothing came', { details: { reason: 'silence' } });
  const open = ({ id }: BackendRecord): Backend => ({ id, policyVersion: 0, logprobs: 'raw', generate: () => Promise.reject(silence) });
  const pool = bed.addPool({ open, breakAfter: 1 });
  await bed.join(toRecord(a, slow.url), toRecord(b, gone.url));
  await gone[Symbol.asyncDispose]();
  const leases = await Promise.all((await bed.run(2)).map((rollout) => pool.acquire({ signal, rollout })));
  for (const lease of leases) assert.equal(await call(lease), 'failed');
  while (!(await bed.store.backends()).some(({ health }) => health?.brokenAtMs !== undefined));
  assert.deepEqual(
    (await bed.store.backends()).map(({ health }) => health?.brokenAtMs !== undefined),
    [false, true],
  );
});

test('while all backends are removed and added again, running and new rollouts wait, and none fails', async () => {
  await using bed = await Bed.open();
  await using fake = await openFake();
  const pool = bed.addPool();
  await bed.join(toRecord(a, fake.url), toRecord(b, fake.url));
  const claims = await bed.run(6);
  const leases = await Promise.all(claims.slice(0, 4).map((rollout) => pool.acquire({ signal, rollout })));
  await bed.store.clearBackends();
  await bed.refresh();
  for (const lease of leases) assert.equal(await call(lease), 'gone');
  const waits = [
    ...leases.map((lease) => pool.move(lease, { signal, reason: 'failed' })),
    ...claims.slice(4).map((rollout) => pool.acquire({ signal, rollout })),
  ];
  await bed.store.joinBackend(toRecord(a, fake.url));
  await bed.store.joinBackend(toRecord(b, fake.url));
  await bed.refresh();
  for (const lease of await Promise.all(waits)) assert.equal(await call(lease), 'answered');
  assert.deepEqual(await bed.loads(), { a: 3, b: 3 });
});

test('a machine that cannot reach a backend is cut off until its own probe succeeds, and the others go on', async () => {
  await using bed = await Bed.open();
  await using fake = await openFake();
  const [near, far] = [bed.addPool({ machine: 'near' }), bed.addPool({ machine: 'far' })];
  await bed.join(toRecord(a, fake.url));
  const [[one], [two]] = [await bed.run(1, {}, 'near'), await bed.run(1, {}, 'far')];
  using _near = await near.acquire({ signal, rollout: one });
  await bed.store.breakBackend(a, { error: 'no route', machine: 'far' });
  await bed.refresh();
  assert.deepEqual([near.isCutOff, far.isCutOff], [false, true]);
  const waiting = far.acquire({ signal, rollout: two });
  using again = await near.acquire({ signal, rollout: one });
  assert.equal(again.id, 'a');
  while ((await bed.store.backends())[0]?.health?.brokenFor !== undefined) bed.clock.advance(1000);
  await bed.refresh();
  using lease = await waiting;
  assert.deepEqual([lease.id, far.isCutOff], ['a', false]);
});
