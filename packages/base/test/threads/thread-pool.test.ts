// The pool of threads: what a function may use up, and that this harms no one else.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { measureLoopBlock } from '@millrace/testkit/plain';
import { ThreadPool } from '../../src/threads/thread-pool.ts';
import { add, backtrack, fail, fill, lengthOf, nest, outOfRange, repeat, spin } from './entry.ts';

const entry = new URL('./entry.ts', import.meta.url);
const openPool = (threads = 1) => new ThreadPool({ entry, name: 'test', threads, heapMiB: 64 });
const cpuMs = 200;

test('a call returns the value of the function, or rejects with what it throws', async () => {
  await using pool = openPool();
  assert.deepEqual(await pool.call(add, [1, 2], { cpuMs }), { kind: 'value', value: 3 });
  await assert.rejects(pool.call(fail, ['broken'], { cpuMs }), /^Error: broken$/);
  await assert.rejects(pool.call(outOfRange, [], { cpuMs }), RangeError);
});

for (const [what, by, work] of [
  ['a loop', 'cpu', (pool: ThreadPool) => pool.call(spin, [], { cpuMs })],
  ['a pattern that goes back again and again', 'cpu', (pool: ThreadPool) => pool.call(backtrack, [`${'a'.repeat(40)}b`], { cpuMs })],
  ['objects', 'memory', (pool: ThreadPool) => pool.call(fill, [], { cpuMs: 60_000 })],
  ['a text', 'memory', (pool: ThreadPool) => pool.call(repeat, ['ab', 1 << 29], { cpuMs })],
  ['recursion', 'stack', (pool: ThreadPool) => pool.call(nest, [10_000_000], { cpuMs })],
] as const)
  test(`${what} without an end exhausts its call by ${by}, and the next call has a value`, async () => {
    await using pool = openPool();
    assert.deepEqual(await work(pool), { kind: 'exhausted', by });
    assert.deepEqual(await pool.call(add, [1, 2], { cpuMs }), { kind: 'value', value: 3 });
  });

test('an endless call blocks neither the event loop nor a call in another thread', async () => {
  await using pool = openPool(2);
  await Promise.all([pool.call(add, [1, 1], { cpuMs }), pool.call(add, [1, 1], { cpuMs })]);
  const order: string[] = [];
  const blockedMs = await measureLoopBlock(() =>
    Promise.all([
      pool.call(spin, [], { cpuMs }).then(({ kind }) => order.push(kind)),
      pool.call(add, [1, 2], { cpuMs }).then(({ kind }) => order.push(kind)),
    ]),
  );
  assert.deepEqual(order, ['value', 'exhausted']);
  assert.ok(blockedMs < 20, `${blockedMs} ms`);
});

test('an abort ends a call that runs and one that waits, and the pool stays usable', async () => {
  await using pool = openPool();
  await pool.call(add, [1, 2], { cpuMs });
  const [running, waiting] = [new AbortController(), new AbortController()];
  const calls = [running, waiting].map(({ signal }) => pool.call(spin, [], { cpuMs: 60_000, signal }));
  waiting.abort(new Error('not wanted'));
  await assert.rejects(calls[1] ?? assert.fail(), /not wanted/);
  running.abort(new Error('stopped'));
  await assert.rejects(calls[0] ?? assert.fail(), /stopped/);
  assert.deepEqual(await pool.call(add, [1, 2], { cpuMs }), { kind: 'value', value: 3 });
});

test('buffers move to the thread, and the small ones that Node shares are copied', async () => {
  await using pool = openPool();
  const [large, small] = [Buffer.alloc(1 << 20), Buffer.from('a few bytes')];
  assert.deepEqual(await pool.call(lengthOf, [large], { cpuMs, transfer: [large] }), { kind: 'value', value: 1 << 20 });
  assert.deepEqual(await pool.call(lengthOf, [small], { cpuMs, transfer: [small] }), { kind: 'value', value: 11 });
  assert.equal(large.length, 0);
  assert.equal(small.toString(), 'a few bytes');
});

test('a thread that cannot start is an error of the service', async () => {
  const pool = new ThreadPool({ entry: new URL('./no-entry.ts', import.meta.url), name: 'test', threads: 1, heapMiB: 64 });
  for (let tries = 0; tries < 2; tries += 1)
    await assert.rejects(pool.call(add, [1, 2], { cpuMs }), { code: 'internal', message: /a thread of test ended: .*does not load/ });
});

test('neither an idle thread nor one that computes keeps the process alive', async () => {
  const source = `import { ThreadPool } from ${JSON.stringify(new URL('../../src/threads/thread-pool.ts', import.meta.url).href)};
    import { add, spin } from ${JSON.stringify(entry.href)};
    const pool = new ThreadPool({ entry: new URL(${JSON.stringify(entry.href)}), name: 'test', threads: 2, heapMiB: 64 });
    await pool.call(add, [1, 2], { cpuMs: 1000 });
    if (process.argv[1] === 'busy') { pool.call(spin, [], { cpuMs: 600_000 }); setTimeout(() => process.exit(0), 100); }`;
  for (const mode of ['idle', 'busy']) {
    const child = spawn(process.execPath, ['--input-type=module', '--eval', source, mode], { stdio: 'inherit' });
    assert.deepEqual(await once(child, 'exit'), [0, null], mode);
  }
});
