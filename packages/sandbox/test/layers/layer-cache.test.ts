// Layers are made once and shared: which caller makes them, which wait, how failures spread, and which layers are removed.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Expired } from '@millrace/base/deadline';
import { makeTempFolder } from '@millrace/testkit/plain';
import { LayerCache, type LayerLease, type LayerPlan } from '../../src/layers/layer-cache.ts';
import type { LayerRequest, Sandbox, SandboxDriver } from '../../src/sandbox.ts';

/** A driver without sandboxes: the test defines the preparation, and a layer is one file of 64 KiB. */
function makeDriver(): SandboxDriver {
  return {
    name: 'none',
    open: async () => assert.fail('no sandbox is needed'),
    async freeze(_spec, { folder, prepare, signal }: LayerRequest) {
      const aborted = Promise.withResolvers<never>();
      signal?.addEventListener('abort', () => aborted.reject(signal.reason));
      await Promise.race([prepare({} as Sandbox), aborted.promise]);
      await mkdir(join(folder, 'home'), { recursive: true });
      await writeFile(join(folder, 'home/file'), Buffer.alloc(1 << 16));
    },
    sweep: async () => 0,
  };
}

interface CacheFixture extends AsyncDisposable {
  readonly runDir: string;
  openCache(maxBytes?: number): LayerCache;
  layers(): Promise<string[]>;
}

async function openFixture(): Promise<CacheFixture> {
  const temp = await makeTempFolder('layers');
  const runDir = temp.path;
  return {
    runDir,
    openCache: (maxBytes = 2 ** 30) => new LayerCache({ driver: makeDriver(), runDir, maxBytes }),
    layers: async () => (await readdir(join(runDir, 'layers'))).filter((name) => !name.endsWith('.lock')),
    [Symbol.asyncDispose]: () => temp[Symbol.asyncDispose](),
  };
}

function plan(key: string, options: Partial<LayerPlan> = {}): LayerPlan {
  return { spec: {}, key, prepare: async () => {}, signal: new AbortController().signal, uncharged: (wait) => wait(), ...options };
}

const held = async (opening: Promise<LayerLease | undefined>) => (await opening) ?? assert.fail('no layer');
const release = (lease: LayerLease) => lease[Symbol.asyncDispose]();

describe('the layer cache', () => {
  test('prepares a layer once for all callers, and does not charge them for waiting', async () => {
    await using fixture = await openFixture();
    const cache = fixture.openCache();
    let prepared = 0;
    let waits = 0;
    const gate = Promise.withResolvers<void>();
    const prepare = async () => {
      prepared += 1;
      await gate.promise;
    };
    const uncharged = <T>(wait: () => Promise<T>) => {
      waits += 1;
      if (waits === 7) gate.resolve(); // two locks of the first caller, and five callers that wait for it
      return wait();
    };
    const leases = await Promise.all(Array.from({ length: 6 }, () => held(cache.open(plan('a', { prepare, uncharged })))));
    const later = await held(cache.open(plan('a', { prepare })));
    assert.equal(prepared, 1);
    assert.deepEqual(new Set(leases.map(({ folder }) => folder)), new Set([later.folder]));
    await Promise.all([...leases, later].map(release));
    await release(await held(fixture.openCache().open(plan('a', { prepare }))));
    assert.equal(prepared, 1);
  });

  test('a different key, image, environment or limit gives a different layer', async () => {
    await using fixture = await openFixture();
    const cache = fixture.openCache();
    const specs = [{}, { env: { A: '1' } }, { env: { A: '2' } }, { image: '/x' }, { limits: { diskMiB: 5 } }, { network: 'none' as const }];
    const leases = await Promise.all(specs.map((spec) => held(cache.open(plan('a', { spec })))));
    leases.push(await held(cache.open(plan('b'))));
    assert.equal(new Set(leases.map(({ folder }) => folder)).size, 7);
    await Promise.all(leases.map(release));
  });

  test('a failed preparation fails every caller that waited, and the next caller tries again', async () => {
    await using fixture = await openFixture();
    const cache = fixture.openCache();
    const failing = plan('a', { prepare: () => Promise.reject(new Error('no set-up')) });
    const ends = await Promise.allSettled(Array.from({ length: 3 }, () => cache.open(failing)));
    assert.deepEqual(
      ends.map((end) => end.status === 'rejected' && end.reason.message),
      ['no set-up', 'no set-up', 'no set-up'],
    );
    assert.deepEqual(await fixture.layers(), []);
    await release(await held(cache.open(plan('a'))));
  });

  test('if the first caller is cancelled, the next one prepares; a cancelled waiter does not affect the others', async () => {
    await using fixture = await openFixture();
    const cache = fixture.openCache();
    const [first, second] = [new AbortController(), new AbortController()];
    const begun = Promise.withResolvers<void>();
    const stuck = async () => {
      begun.resolve();
      await new Promise(() => {});
    };
    const one = cache.open(plan('a', { prepare: stuck, signal: first.signal }));
    await begun.promise;
    const two = cache.open(plan('a', { signal: second.signal }));
    const three = cache.open(plan('a'));
    second.abort(new Error('two is cancelled'));
    await assert.rejects(two, { message: 'two is cancelled' });
    first.abort(new Error('one is cancelled'));
    await assert.rejects(one, { message: 'one is cancelled' });
    await release(await held(three));
  });

  test('a preparation that runs out of time fails every caller that waits, instead of being repeated by each', async () => {
    await using fixture = await openFixture();
    const cache = fixture.openCache();
    const abort = new AbortController();
    const prepare = async () => {
      abort.abort(new Expired('init', 1000));
      await new Promise(() => {});
    };
    const one = cache.open(plan('a', { prepare, signal: abort.signal }));
    await Promise.all([one, cache.open(plan('a'))].map((opening) => assert.rejects(opening, Expired)));
  });

  test('the least recently used layers are removed when there are too many bytes, but never one in use', async () => {
    await using fixture = await openFixture();
    const cache = fixture.openCache(3 << 16);
    const used = await held(cache.open(plan('used')));
    for (const key of ['a', 'b', 'c']) await release(await held(cache.open(plan(key))));
    const left = await fixture.layers();
    assert.equal(left.length, 2, left.join(' '));
    assert.equal((await readFile(join(used.folder, 'home/file'))).length, 1 << 16);
    await release(used);
  });

  test('a layer in use by another process is not removed, and one that another process makes is waited for', async () => {
    await using fixture = await openFixture();
    const [mine, theirs] = [fixture.openCache(1), fixture.openCache(1)]; // they share nothing, like two processes
    let prepared = 0;
    const prepare = async () => {
      prepared += 1;
    };
    const [used] = await Promise.all([held(theirs.open(plan('a', { prepare }))), held(mine.open(plan('a', { prepare }))).then(release)]);
    await release(await held(mine.open(plan('b'))));
    assert.ok((await readFile(join(used.folder, 'home/file'))).length > 0);
    assert.equal(prepared, 1);
    await release(used);
  });

  test('processes that wait for a layer get it as soon as it is made, even while the others use it', async () => {
    await using fixture = await openFixture();
    const caches = Array.from({ length: 8 }, () => fixture.openCache()); // they share nothing, like eight processes
    const leases = await Promise.all(caches.map((cache) => held(cache.open(plan('a')))));
    assert.equal(new Set(leases.map(({ folder }) => folder)).size, 1);
    await Promise.all(leases.map(release));
  });

  test('a sweep removes finished and half-made layers of dead processes, and none of living ones', async () => {
    await using fixture = await openFixture();
    const cache = fixture.openCache();
    await release(await held(cache.open(plan('mine'))));
    const [kept] = await fixture.layers();
    const [made, half, gone] = ['0'.repeat(16), `${'1'.repeat(16)}.new`, `${'2'.repeat(16)}.gone`];
    for (const name of [made, half, gone]) await mkdir(join(fixture.runDir, 'layers', name, 'home'), { recursive: true });
    await writeFile(join(fixture.runDir, 'layers', made, 'meta.json'), JSON.stringify({ bytes: 1, pid: 999_999, startTicks: 1 }));
    await cache.sweep();
    assert.deepEqual(await fixture.layers(), [kept]);
  });

  test('after a process is killed while it makes a layer, the next caller makes it from scratch', async () => {
    await using fixture = await openFixture();
    const program = `
      import { mkdir, writeFile } from 'node:fs/promises';
      import { LayerCache } from '@millrace/sandbox';
      const freeze = async (_spec, { folder }) => { await mkdir(folder); await writeFile(folder + '/half', ''); console.log('half'); await new Promise(() => setInterval(() => {}, 1000)); };
      const cache = new LayerCache({ driver: { name: 'none', freeze }, runDir: ${JSON.stringify(fixture.runDir)}, maxBytes: 1e9 });
      await cache.open({ spec: {}, key: 'a', prepare: async () => {}, signal: new AbortController().signal, uncharged: (wait) => wait() });`;
    const maker = spawn(process.execPath, ['--input-type=module', '-e', program], {
      cwd: import.meta.dirname,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(maker.stdout, 'data');
    const next = fixture.openCache().open(plan('a'));
    maker.kill('SIGKILL');
    const lease = await held(next);
    assert.deepEqual((await readdir(lease.folder)).sort(), ['home', 'meta.json']);
    await release(lease);
  });
});
