// An evaluation on its own clock, in real sandboxes: the machine changes no verdict, and a program cannot hide behind a busy machine.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { type ErrorCode, RolloutError } from '@millrace/protocol';
import { FakeClock, makeTempFolder } from '@millrace/testkit/plain';
import { openBubblewrapDriver } from '../../src/bubblewrap/bubblewrap.ts';
import { probeBubblewrap } from '../../src/bubblewrap/probe.ts';
import { findDisturbance, OwnTime } from '../../src/limits/own-time.ts';
import type { ExecResult, Sandbox, SandboxDriver } from '../../src/sandbox.ts';
import { FakeDriver } from '../fake-driver.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;

const never = new AbortController().signal;
const openOwnTime = (options: Partial<ConstructorParameters<typeof OwnTime>[0]> = {}) =>
  new OwnTime({ what: 'evaluate', timeoutMs: 60_000, clock: systemClock, signal: never, isLastTry: false, ...options });

/** Kills the process inside any sandbox that has this word in its arguments, as an administrator or the kernel would. */
async function killFromOutside(word: string): Promise<void> {
  for (;;) {
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      try {
        const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
        if (words[0] === 'sleep' && words[1] === word) return void process.kill(Number(pid), 'SIGKILL');
      } catch {} // it has ended
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe('an evaluation on its own clock', { skip, timeout: 240_000 }, () => {
  const stack = new AsyncDisposableStack();
  let driver: SandboxDriver;
  const open = async (limits = {}): Promise<Sandbox> => stack.use(await driver.open({ limits }));
  before(async () => {
    const { path } = stack.use(await makeTempFolder('ju'));
    driver = await openBubblewrapDriver({ runDir: path, log: silentLog });
  });
  after(async () => await stack[Symbol.asyncDispose]());

  const spin = (seconds: number) => ['python3', '-c', `import time\nwhile time.process_time() < ${seconds}: pass`];

  test('a program with a twentieth of a core has its whole time', async () => {
    using judging = openOwnTime();
    const sandbox = judging.watch(await open({ cpus: 0.05 }));
    const { exitCode, timedOut } = await sandbox.exec(spin(0.3), { timeoutMs: 1_500 });
    assert.deepEqual([exitCode, timedOut], [0, false]);
  });

  test('a program that spins, sleeps, or does both in turns or in many processes times out, also without a core of its own', async () => {
    const programs = [
      spin(1000),
      ['sleep', '1000'],
      ['python3', '-c', 'import time\nwhile True:\n  time.sleep(0.001)\n  for _ in range(9999): pass'],
      ['bash', '-c', 'for i in {1..8}; do while :; do :; done & done; wait'],
      ['bash', '-c', 'trap "" CHLD; while :; do (for i in {1..999}; do :; done); done'],
    ];
    using judging = openOwnTime();
    const run = async (argv: readonly string[]) => {
      const sandbox = judging.watch(await open({ cpus: 0.3 }));
      return (await sandbox.exec(argv, { timeoutMs: 600 })).timedOut;
    };
    for (const argv of programs) assert.equal(await run(argv), true, argv.join(' '));
  });

  test('a kill from outside is no result, until it has happened in every try', async () => {
    const killed = (judging: OwnTime, sandbox: Sandbox, word: string) =>
      Promise.all([judging.watch(sandbox).exec(['sleep', word], { timeoutMs: 60_000 }), killFromOutside(word)]);
    using first = openOwnTime();
    await assert.rejects(killed(first, await open(), '7001'), (error: RolloutError) => findDisturbance(error) === 'passing');
    using last = openOwnTime({ isLastTry: true });
    const [{ signal }] = await killed(last, await open(), '7002');
    assert.equal(signal, 'SIGKILL');
  });

  test('a kill at the own limit of memory is a result', async () => {
    using judging = openOwnTime();
    const sandbox = judging.watch(await open({ memoryMiB: 384, diskMiB: 16 }));
    const hog = ['python3', '-c', 'x = bytearray(1 << 30)'];
    const { exitCode, signal } = await sandbox.exec(hog, { timeoutMs: 60_000 });
    assert.ok(signal === 'SIGKILL' || exitCode !== 0, 'without a group, the allocation fails instead');
  });
});

test('a program that the machine gives nothing to ends as starved, not as timed out', async () => {
  const clock = new FakeClock();
  const { contract } = new FakeDriver();
  const fake = await contract.open({});
  const busy = { cpuMs: 0, isBusy: true, ownOomKills: 0, foreignOomKills: 0 };
  const result: ExecResult = { timedOut: true, signal: 'SIGKILL', stdout: Buffer.alloc(0), stderr: Buffer.alloc(0), cutBytes: 0 };
  const exec = ({ timeoutMs }: { timeoutMs: number }) =>
    new Promise<ExecResult>((resolve) => void clock.after(timeoutMs, () => resolve(result)));
  using judging = openOwnTime({ clock, timeoutMs: 600_000 });
  const sandbox = judging.watch({ ...fake, readUse: () => busy, exec: (_, options) => exec(options) });
  const run = sandbox.exec(['make'], { timeoutMs: 10_000 });
  run.catch(() => {}); // asserted below
  clock.advance(150_000);
  clock.advance(11_000);
  await assert.rejects(run, (error: RolloutError) => findDisturbance(error) === 'starved' && /make got too little/.test(error.message));
  clock.advance(7_000_000);
  assert.equal(judging.signal.aborted, true);
  assert.equal(findDisturbance(judging.signal.reason), 'starved');
});

test('a sandbox that died, and nothing that the agent did, is worth another try', () => {
  const codes: ErrorCode[] = ['sandbox-died', 'sandbox-start-failed', 'sandbox-failed', 'evaluate-disturbed'];
  assert.deepEqual(new Set(codes.map((code) => findDisturbance(new RolloutError(code, '')))), new Set(['passing']));
  const others: ErrorCode[] = ['sandbox-killed', 'sandbox-limit', 'policy-failed', 'evaluate-failed', 'evaluate-timeout', 'cancelled'];
  for (const code of others) assert.equal(findDisturbance(new RolloutError(code, '')), undefined, code);
});
