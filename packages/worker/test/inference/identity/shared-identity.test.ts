// Workers that share a store agree on which server answers, and on whether anything says which weights it has.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import { Ledger } from '@millrace/model';
import { backendId, sampling } from '@millrace/protocol';
import { openSqliteStore, type Store } from '@millrace/store';
import { FakeBackend, type FakeBackendOptions, makeTempFolder, openFakeTokens } from '@millrace/testkit';
import { BackendPool } from '../../../src/inference/pool/pool.ts';
import { Sampler } from '../../../src/inference/sampler.ts';

const tokens = await openFakeTokens();
const id = backendId.parse('a');

async function openFake(options: Partial<FakeBackendOptions> = {}): Promise<FakeBackend> {
  const fake = new FakeBackend({ policy: () => ({ text: 'yes' }), ...options }, tokens);
  await fake.listen();
  return fake;
}

async function restart(old: FakeBackend, options: Partial<FakeBackendOptions> = {}): Promise<FakeBackend> {
  const port = Number(new URL(old.url).port);
  await old[Symbol.asyncDispose]();
  return await openFake({ ...options, port });
}

class Bed implements AsyncDisposable {
  readonly stack = new AsyncDisposableStack();
  readonly pools: BackendPool[] = [];
  readonly store: Store;

  private constructor(store: Store) {
    this.store = store;
  }

  static async open(workers: number): Promise<Bed> {
    const folder = await makeTempFolder('identity');
    const store = await openSqliteStore({ path: join(folder.path, 'store.db'), clock: systemClock, log: silentLog });
    const bed = new Bed(store);
    bed.stack.use(folder);
    bed.stack.use(store);
    for (let worker = 0; worker < workers; worker += 1)
      bed.pools.push(bed.stack.use(new BackendPool({ log: silentLog, pace: new Pace(), placements: store })));
    return bed;
  }

  /** As workers do after an event of a backend. */
  async refresh(): Promise<void> {
    for (const pool of this.pools) pool.update(await this.store.backends());
  }

  async load(policyVersion: number): Promise<void> {
    await this.store.pausePolicy({ mode: 'wait' });
    await this.store.resumePolicy({ policyVersion, cachesFlushed: true });
    await this.refresh();
  }

  async sample(worker: number) {
    const pool = this.pools[worker] ?? assert.fail();
    const ledger = new Ledger();
    ledger.appendPrompt({ tokenIds: tokens.encode('<|im_start|>assistant\n'), text: '', messages: [] });
    using sampler = new Sampler({ ledger, pool, sessionId: 'r', delayMs: 1 });
    const { signal } = new AbortController();
    return await sampler.sample({ sampling: sampling.parse({}), maxTokens: 20, stopTokenIds: [tokens.endOfTurnId], signal });
  }

  async readHealth() {
    return (await this.store.backends())[0]?.health;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stack.disposeAsync();
  }
}

const record = (url: string) => ({ id, url, dialect: 'vllm', policyVersion: 0, state: 'up' }) as const;

test('what one worker finds is another server for all of them, and one event says so', async () => {
  await using bed = await Bed.open(2);
  await using first = await openFake({ version: '0.27.1' });
  await bed.store.joinBackend(record(first.url));
  await bed.refresh();
  for (const worker of [0, 1]) assert.equal((await bed.sample(worker)).engine.engine_version, '0.27.1');
  await using _ = await restart(first, { version: '0.32.0', isProcessed: true });
  for (const worker of [0, 1]) {
    const { engine } = await bed.sample(worker);
    assert.deepEqual([engine.engine_version, engine.logprobs_mode, engine.generation], ['0.32.0', 'processed', 2]);
  }
  const { events } = await bed.store.events(0, { limit: 99 });
  const changes = events.filter(({ kind }) => kind === 'backend-changed');
  assert.deepEqual(
    changes.map(({ data: { generation, weights } }) => [generation, weights]),
    [[2, 'known']],
  );
});

test('a server that is restarted after new weights gets no rollouts until a resume names its weights', async () => {
  await using bed = await Bed.open(1);
  await using first = await openFake();
  await bed.store.joinBackend(record(first.url));
  await bed.refresh();
  await bed.sample(0);
  await bed.load(1);
  assert.deepEqual((await bed.sample(0)).policyVersions, { first: 1, last: 1 });
  await using second = await restart(first);
  await assert.rejects(bed.sample(0), /became another one|which weights/);
  assert.match((await bed.readHealth())?.error ?? '', /nothing says which weights/);
  assert.ok((await bed.readHealth())?.brokenAtMs !== undefined);
  await bed.load(2);
  assert.equal((await bed.readHealth())?.brokenAtMs, undefined);
  const { engine, policyVersions } = await bed.sample(0);
  assert.deepEqual([engine.generation, policyVersions], [2, { first: 2, last: 2 }]);
  assert.ok(second.generations > 0);
});

test('a server that is restarted during a pause has the weights that the resume names', async () => {
  await using bed = await Bed.open(1);
  await using first = await openFake();
  await bed.store.joinBackend(record(first.url));
  await bed.refresh();
  await bed.sample(0);
  await using _ = await restart(first);
  await bed.load(1);
  const { engine, policyVersions } = await bed.sample(0);
  assert.deepEqual([engine.generation, policyVersions], [2, { first: 1, last: 1 }]);
  assert.equal((await bed.readHealth())?.brokenAtMs, undefined);
});

test('a server of another engine in its place is named as what it is, not by the route that it lacks', async () => {
  await using bed = await Bed.open(0);
  const fake = await openFake({ engine: 'vllm' });
  await bed.store.joinBackend(record(fake.url));
  await using _other = await restart(fake, { engine: 'sglang' });
  const probed = Promise.withResolvers<string>();
  const { store } = bed;
  const placements = new Proxy(store, {
    get(target, name) {
      const method = Reflect.get(target, name);
      if (typeof method !== 'function') return method;
      return (...args: unknown[]) => {
        const [, options] = args as Parameters<Store['breakBackend']>;
        if (name === 'breakBackend' && options.isProbe) probed.resolve(options.error);
        return method.apply(target, args);
      };
    },
  });
  await bed.store.breakBackend(id, { error: 'connect ECONNREFUSED' });
  await using pool = new BackendPool({ log: silentLog, pace: new Pace(), placements });
  pool.update(await bed.store.backends());
  assert.match(await probed.promise, /^its server is sglang, which the dialect vllm cannot call; add it again without a dialect/);
});
