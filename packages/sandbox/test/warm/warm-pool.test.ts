// The warm pool, on a fake driver whose sandboxes the tests control, and on bubblewrap with the whole contract suite.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { defineSandboxSuite, FakeClock, makeTempFolder, type TempFolder } from '@millrace/testkit';
import { openBubblewrapDriver } from '../../src/bubblewrap/bubblewrap.ts';
import { probeBubblewrap } from '../../src/bubblewrap/probe.ts';
import { sandboxConfig } from '../../src/config.ts';
import { agentUid } from '../../src/launch/agent-user.ts';
import type { SandboxDriver } from '../../src/sandbox.ts';
import { openWarmPool, type WarmPool } from '../../src/warm/warm-pool.ts';
import { FakeDriver } from '../fake-driver.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;
const timeoutMs = 10_000;

function makePool(config: Partial<ReturnType<typeof sandboxConfig.parse>['warm']> = {}) {
  const driver = new FakeDriver();
  const clock = new FakeClock();
  const pool = openWarmPool({ ...driver.contract }, { config: { ...sandboxConfig.parse({}).warm, ...config }, log: silentLog, clock });
  return { driver, clock, pool };
}

const a = { image: 'a' };
const b = { image: 'b' };

describe('a warm pool', () => {
  test('starts no sandboxes ahead for a spec that was requested once, and starts some for one requested twice', async () => {
    const { driver, pool } = makePool();
    const first = await pool.open(a);
    await pool.settled();
    assert.equal(driver.opened.length, 1);
    const second = await pool.open({ ...a, env: {} });
    await pool.open({ env: {}, ...a }); // the same spec with its fields in another order
    await pool.settled();
    assert.equal(driver.opened.length, 5);
    const third = await pool.open({ ...a, env: {} });
    assert.equal(new Set([first.id, second.id, third.id]).size, 3);
    assert.ok(driver.opened.slice(3).some(({ sandbox }) => sandbox === third));
    await pool[Symbol.asyncDispose]();
  });

  test('never hands out a sandbox twice, and starts its wall time when it is handed out', async () => {
    const { driver, pool } = makePool();
    pool.expect(a, 8);
    await pool.settled();
    assert.deepEqual(
      driver.opened.map(({ isHandedOver }) => isHandedOver),
      [false, false],
    );
    const given = await Promise.all(Array.from({ length: 8 }, () => pool.open(a)));
    assert.equal(new Set(given).size, 8);
    assert.ok(driver.opened.filter(({ sandbox }) => given.includes(sandbox)).every(({ isHandedOver }) => isHandedOver));
    await pool[Symbol.asyncDispose]();
    assert.ok(given.every(({ id }) => driver.living().includes(id)));
    assert.equal(driver.living().length, 8);
  });

  test('keeps no more sandboxes than its count and memory allow, shared between specs', async () => {
    const { driver, pool } = makePool({ sandboxes: 4, memoryMiB: 1024 });
    pool.expect(a, 8);
    await pool.settled();
    assert.deepEqual(driver.images(), ['a', 'a', 'a', 'a']);
    pool.expect(b, 8);
    await pool.settled();
    assert.deepEqual(driver.images(), ['a', 'b', 'b', 'b']);
    const { driver: poor, pool: small } = makePool({ sandboxes: 4, memoryMiB: 130 });
    small.expect(a, 8);
    await small.settled();
    assert.equal(poor.living().length, 2);
    for (const none of [{ sandboxes: 0 }, { memoryMiB: 10 }]) {
      const { driver: off, pool: empty } = makePool(none);
      empty.expect(a, 8);
      for (let asks = 0; asks < 3; asks += 1) await (await empty.open(a))[Symbol.asyncDispose]();
      await empty.settled();
      assert.deepEqual([off.opened.length, off.living().length], [3, 0]);
    }
  });

  test('never hands out a sandbox that died or does not reply', async () => {
    const { driver, pool } = makePool();
    pool.expect(a, 8);
    await pool.settled();
    const [dead, failing] = driver.opened;
    dead?.die();
    assert.deepEqual(driver.living(), [failing?.sandbox.id]);
    failing?.refuse();
    const given = await pool.open(a);
    assert.equal(driver.opened.length, 3);
    assert.equal(given, driver.opened[2]?.sandbox);
    await pool.settled();
    assert.deepEqual(driver.living(), [given.id]);
  });

  test('gives up on a sandbox that does not reply within two seconds', async () => {
    const { driver, clock, pool } = makePool({ sandboxes: 1 });
    pool.expect(a, 2);
    await pool.settled();
    driver.opened[0]?.hang();
    const opening = pool.open(a);
    clock.advance(2_000);
    assert.equal(await opening, driver.opened[1]?.sandbox);
    await pool[Symbol.asyncDispose]();
    assert.equal(driver.living().length, 1);
  });

  test('closes a sandbox that was ready for too long, and replaces it only while its spec is requested', async () => {
    const { driver, clock, pool } = makePool({ sandboxes: 1, maxAgeSeconds: 60 });
    pool.expect(a, 4);
    await pool.settled();
    clock.advance(40_000);
    pool.expect(a, 4);
    clock.advance(20_000);
    await pool.settled();
    assert.deepEqual([driver.opened.length, driver.living().length], [2, 1]);
    clock.advance(60_000);
    await pool.settled();
    assert.deepEqual([driver.opened.length, driver.living().length], [2, 0]);
  });

  test('starts nothing ahead while a caller waits for a sandbox', async () => {
    const { driver, pool } = makePool();
    const held = driver.hold();
    const cold = pool.open(b);
    pool.expect(a, 8);
    await new Promise(setImmediate);
    assert.deepEqual(driver.asked, ['b']);
    held.release();
    await cold;
    await pool.settled();
    assert.deepEqual(driver.asked, ['b', 'a', 'a']);
    await pool[Symbol.asyncDispose]();
  });

  test('a caller gets the sandbox that is being started; if the caller is cancelled, the next one gets it', async () => {
    const { driver, pool } = makePool({ sandboxes: 1 });
    const held = driver.hold();
    pool.expect(a, 8);
    const cancel = new AbortController();
    const impatient = pool.open(a, { signal: cancel.signal });
    cancel.abort(new Error('no longer wanted'));
    await assert.rejects(impatient, /no longer wanted/);
    const patient = pool.open(a);
    held.release();
    assert.equal(await patient, driver.opened[0]?.sandbox);
    await pool[Symbol.asyncDispose]();
    assert.equal(driver.living().length, 1);
  });

  test('an aborted open takes no sandbox', async () => {
    const { driver, pool } = makePool({ sandboxes: 1 });
    pool.expect(a, 8);
    await pool.settled();
    const cancel = new AbortController();
    const opening = pool.open(a, { signal: cancel.signal });
    cancel.abort(new Error('no longer wanted'));
    await assert.rejects(opening, /no longer wanted/);
    await assert.rejects(pool.open(a, { signal: cancel.signal }), /no longer wanted/);
    assert.equal(await pool.open(a), driver.opened[0]?.sandbox);
    await pool[Symbol.asyncDispose]();
  });

  test('a spec that cannot be started is not tried again until it is requested', async () => {
    const { driver, pool } = makePool();
    driver.failing = true;
    for (let asks = 0; asks < 3; asks += 1) await assert.rejects(pool.open(a), /no machine/);
    pool.expect(b, 8);
    await pool.settled();
    assert.deepEqual(driver.asked, ['a', 'a', 'a', 'b']);
  });

  test('closing waits for the sandbox that is being started, and leaves none behind', async () => {
    const { driver, pool } = makePool();
    pool.expect(a, 8);
    await pool.settled();
    const held = driver.hold();
    pool.expect(b, 8);
    const closing = pool[Symbol.asyncDispose]();
    held.release();
    await closing;
    await pool[Symbol.asyncDispose]();
    assert.deepEqual(driver.living(), []);
  });
});

describe('a warm pool of bubblewrap sandboxes', { skip }, () => {
  let temp: TempFolder;
  let runDir: string;
  let driver: SandboxDriver;
  let pool: WarmPool;
  before(async () => {
    temp = await makeTempFolder('millrace');
    runDir = temp.path;
    driver = await openBubblewrapDriver({ runDir, log: silentLog });
    pool = openWarmPool(driver, { config: { sandboxes: 1, memoryMiB: 1024, maxAgeSeconds: 600 }, log: silentLog });
  });
  after(async () => {
    await pool[Symbol.asyncDispose]();
    const left = (await readdir(runDir)).filter((name) => name.startsWith('sb-'));
    await temp[Symbol.asyncDispose]();
    assert.deepEqual(left, []);
  });

  /** Every sandbox of the suite was started ahead. */
  const alwaysWarm = async () => ({
    ...pool,
    open: async (...[spec, options]: Parameters<WarmPool['open']>) => {
      pool.expect(spec, 16);
      await pool.settled();
      return pool.open(spec, options);
    },
  });
  defineSandboxSuite('bubblewrap, warm', alwaysWarm, {
    hostUid: process.getuid?.() === 0 ? agentUid : undefined,
    isPooled: true,
  });

  test('a killed sandbox is not handed out, and a new one sees nothing of the one before', async () => {
    const { open } = await alwaysWarm();
    const first = await open({});
    await first.runShell('echo secret > ~/secret; export SECRET=1; sleep 4321 &', { timeoutMs });
    await first[Symbol.asyncDispose]();
    await pool.settled();
    const [waiting = ''] = (await readdir(runDir)).filter((name) => name.startsWith('sb-'));
    process.kill(Number((await readFile(join(runDir, waiting, 'process'), 'utf8')).split(' ')[0]), 'SIGKILL');
    await using next = await pool.open({});
    assert.notEqual(next.id, waiting);
    const seen = await next.runShell('ls -A ~ /tmp; echo "[$SECRET]"; grep -lz "[4]321" /proc/[0-9]*/cmdline; true', { timeoutMs });
    assert.equal(seen.output.replace(/^\/(workspace|tmp):$/gm, '').trim(), '[]');
  });

  test('the wall time of a sandbox that is started ahead begins when it is handed over', async () => {
    const handed = Promise.withResolvers<void>();
    await using sandbox = await driver.open({ limits: { wallSeconds: 0.2 } }, { handedOver: handed.promise });
    assert.equal((await sandbox.runShell('sleep 0.3', { timeoutMs })).exitCode, 0);
    const died = once(sandbox.died, 'abort');
    handed.resolve();
    await died;
    await assert.rejects(sandbox.runShell('true', { timeoutMs }), { code: 'sandbox-limit', message: /wallSeconds/ });
  });
});
