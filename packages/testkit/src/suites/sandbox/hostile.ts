// The sandbox suite: agents that do harm, on purpose or by accident. Each attack runs in its own small sandbox and has a defined result,
// and a neighbouring sandbox keeps working. `attacks` has many more, as a table.

import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import type { Sandbox, ShellResult } from '@millrace/sandbox';
import { type SuiteContext, timeoutMs } from './context.ts';

const small = { cpus: 1, memoryMiB: 384, processes: 64, diskMiB: 16, openFiles: 128 };

interface AttackFixture {
  neighbour(): Sandbox;
  /** Runs a command in a new small sandbox, which is closed after the test. */
  attack(command: string, options?: { readonly timeoutMs?: number }): Promise<ShellResult>;
  /** The sandbox of the last attack. */
  victim(): Sandbox;
  assertWorks(): Promise<void>;
}

export function defineHostile(context: SuiteContext): void {
  const fixture = openAttacks(context);
  defineUsedUp(fixture);
  defineFullDisks(fixture);
  if (!context.isRootWritable) defineReadOnlyRoot(fixture);
  defineExecutorAttacks(fixture);
  defineWallAttacks(fixture, context);
  defineClosing(context);
}

function openAttacks({ driver }: SuiteContext): AttackFixture {
  let neighbour: Sandbox;
  let victim: Sandbox | undefined;
  before(async () => {
    neighbour = await driver().open({});
  });
  afterEach(async () => {
    const reply = await neighbour.exec(['echo', 'well'], { timeoutMs });
    assert.equal(reply.stdout.toString(), 'well\n');
    await victim?.[Symbol.asyncDispose]();
    victim = undefined;
  });
  after(() => neighbour[Symbol.asyncDispose]());
  const getVictim = () => victim ?? assert.fail('there was no attack yet');
  return {
    neighbour: () => neighbour,
    victim: getVictim,
    async attack(command, options = {}) {
      victim = await driver().open({ limits: small });
      return victim.runShell(command, { timeoutMs, ...options });
    },
    async assertWorks() {
      assert.match((await getVictim().runShell('echo alive', { timeoutMs })).output, /alive\n$/);
    },
  };
}

/** Resources that a sandbox may use up, and what its agent sees then. */
function defineUsedUp({ attack, victim, neighbour, assertWorks }: AttackFixture): void {
  test('a memory bomb is killed, and the sandbox survives', async () => {
    const result = await attack('python3 -c "x = bytearray(10**10)"; echo "code $?"');
    assert.match(result.output, /code (137|1)\n/);
    await assertWorks();
  });

  test('many processes that together use up the memory are killed before the executor', async () => {
    await attack('for i in {1..40}; do python3 -c "import time; x = bytearray(2**25); time.sleep(100)" & done; wait -n');
    await assertWorks();
  });

  test('a fork bomb fills only its own sandbox, and can be killed from its shell', async () => {
    await attack(':(){ :|:& };:');
    await victim().runShell('kill -9 -1', { timeoutMs });
    await assertWorks();
  });

  test('processes over the limit are refused, and a program of the worker still runs or throws sandbox-limit', async () => {
    const fork = 'while True:\n    if os.fork() == 0: time.sleep(100)';
    const result = await attack(`python3 -c 'import os, time\ntry:\n  ${fork}\nexcept OSError as error: print(error)'`);
    assert.match(result.output, /Resource temporarily unavailable/);
    const programs = await Promise.allSettled(Array.from({ length: 40 }, () => victim().exec(['sleep', '0.2'], { timeoutMs })));
    const codes = programs.flatMap((end) => (end.status === 'rejected' ? [end.reason.code] : []));
    assert.deepEqual(
      codes.filter((code) => code !== 'sandbox-limit'),
      [],
    );
  });

  test('the limit of open files applies to each process', async () => {
    const result = await attack(
      'python3 -c "import os\nfor i in range(1000): os.dup(0)"; python3 -c "import resource as r; print(r.getrlimit(7))"',
    );
    assert.match(result.output, /Too many open files[\s\S]*\(128, 128\)\n$/);
    await assertWorks();
  });

  test('a CPU hog leaves its neighbour responsive', async () => {
    await attack('for i in {1..20}; do (while :; do :; done) & done');
    const startMs = performance.now();
    for (let calls = 0; calls < 20; calls += 1) await neighbour().runShell('true', { timeoutMs });
    assert.ok(performance.now() - startMs < 5000);
    await assertWorks();
  });
}

function defineFullDisks({ attack, victim, assertWorks }: AttackFixture): void {
  for (const folder of ['/workspace', '/tmp', '/dev/shm', '/run/millrace/own']) {
    test(`a full ${folder} reports no space, and the shell keeps working`, async () => {
      const result = await attack(`head -c 1G /dev/zero > ${folder}/large; rm -f /nothing; stat -c %s ${folder}/large`);
      assert.match(result.output, /No space left on device\n\d{8,9}\n$/);
      if (folder === '/workspace') await assert.rejects(victim().writeFile('more', Buffer.alloc(1 << 16)), { code: 'sandbox-limit' });
      await assertWorks();
    });
  }
}

/** Not for drivers with a writable root: there all of this is allowed, and the image itself does not change. */
function defineReadOnlyRoot({ attack, victim }: AttackFixture): void {
  test('no other folder is writable', async () => {
    const result = await attack('find / -xdev -writable -type d 2>/dev/null; for f in /x /dev/x /usr/x /run/x /opt/x; do echo > $f; done');
    assert.equal(result.output.match(/Read-only file system|Permission denied/g)?.length, 5);
  });

  test('rm -rf / removes only files of the sandbox', async () => {
    await attack('echo x > file; rm -rf --no-preserve-root / 2>/dev/null', { timeoutMs: 1500 });
    assert.equal((await victim().runShell('ls -A ~; ls -d /usr/bin', { timeoutMs })).output, '/usr/bin\n');
  });

  test('a system file can be read through a link if that is asked for, but not written', async () => {
    await attack('ln -s / root; ln -s /etc/passwd names');
    const read = (anyLink: boolean) => victim().readFile('names', { maxBytes: 1 << 20, anyLink });
    assert.match((await read(true)).toString(), /^root:x:0:0:.*\nagent:x:1000/);
    await assert.rejects(read(false), { code: 'not-found' });
    await assert.rejects(victim().writeFile('names', 'mine'), { code: 'sandbox-refused' });
    await assert.rejects(victim().writeFile('root/etc/new', 'mine'), { code: 'sandbox-refused' });
  });

  test('a user namespace inside gives no rights over system files', async () => {
    const result = await attack(`unshare -Urmnpf bash -c '
      mount -o remount,rw,bind /usr && [ -w /usr ] && echo wrote; mount -o remount,rw,bind / && echo x > /x && echo wrote
      chown 0:0 /etc/passwd && echo changed' 2>/dev/null`);
    assert.doesNotMatch(result.output, /wrote|changed/);
  });
}

/** The executor runs next to the agent, as the same user. */
function defineExecutorAttacks({ attack, victim, assertWorks }: AttackFixture): void {
  test('the executor cannot be traced, read or reached through /proc', async () => {
    const result = await attack(`python3 - <<'end'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
fd = os.pidfd_open(1)
print('attach', libc.ptrace(16, 1, 0, 0), 'seize', libc.ptrace(0x4206, 1, 0, 0))
print('getfd', {libc.syscall(438, fd, n, 0) for n in range(40)})
for path in ['mem', 'maps', 'environ', 'cwd/x', 'root/x', *('fd/%d' % n for n in range(40))]:
  try: print(path, open('/proc/1/' + path, 'r+b').read(1))
  except OSError: pass
end`);
    assert.equal(result.output, 'attach -1 seize -1\ngetfd {-1}\n');
    await assertWorks();
  });

  test('the socket of the executor cannot be reached, and its files cannot be changed', async () => {
    const result = await attack(
      'ls /run/millrace/link; cd /run/millrace/link; rm -f env.json; echo > limits.json; touch socket; find / -type s 2>/dev/null',
    );
    assert.match(result.output, /^env\.json\s+limits\.json\n/);
    assert.equal(result.output.match(/Read-only file system/g)?.length, 3);
    assert.doesNotMatch(result.output, /^\/.*socket/m);
  });

  test('an agent cannot change the limits of the executor, also not through one of its threads', async () => {
    const result = await attack('for id in {1..30}; do prlimit --pid $id --nofile=1:1 && echo changed; done 2>/dev/null');
    assert.equal(result.output, '');
    assert.equal((await victim().exec(['echo', 'fine'], { timeoutMs })).stdout.toString(), 'fine\n');
  });
}

/** Attacks on the machine outside the sandbox. */
function defineWallAttacks({ attack, victim }: AttackFixture, { driver, uid }: SuiteContext): void {
  test('links resolve inside the sandbox, also for files that the worker reads and writes', async () => {
    await attack('ln -s /etc/shadow secret; ln -s / root; ln -s /proc/1/root/etc/shadow around');
    for (const path of ['secret', 'root/etc/shadow', 'around', 'root/root/.bashrc']) {
      await assert.rejects(victim().readFile(path, { maxBytes: 1 << 20 }), { code: 'not-found' }, path);
    }
  });

  // Only checks permissions: with a real write, a driver that fails here would change the machine that it is tested on.
  test('kernel settings cannot be written, and kernel memory cannot be read', async () => {
    const own = "-not -path '/proc/[0-9]*' -not -path '/proc/*self/*'";
    const result = await attack(
      `find /proc /sys ${own} -type f -writable -exec test -f {} \\; -print 2>/dev/null; head -c1 /proc/kcore /dev/mem /dev/kmsg 2>/dev/null; true`,
    );
    assert.equal(result.output, '');
  });

  // Sets the current values again, so that a driver that fails here changes nothing.
  test('the devices of the machine can be used, but their modes and owners cannot be changed', async () => {
    const each =
      'chmod $(stat -c %a $f) $f 2>/dev/null && echo "mode of $f"; chown $(stat -c %u:%g $f) $f 2>/dev/null && echo "owner of $f"';
    const result = await attack(
      `for f in /dev/null /dev/zero /dev/random /dev/urandom /dev/tty; do ${each}; done; echo x > /dev/null; echo x >> /dev/null; head -c 4 /dev/urandom /dev/zero | wc -c >/dev/null && echo used`,
    );
    assert.equal(result.output, 'used\n');
  });

  test('a user namespace inside has rights only over itself', async () => {
    const result = await attack(`unshare -Urmnpf bash -c '
      id -u; [ -w /proc/sys/kernel/core_pattern ] && echo wrote; mount -o remount,rw,bind /proc/sys; umount /proc/sys; mount -t proc proc /tmp && [ -w /tmp/sys/kernel/core_pattern ] && echo wrote; cat /proc/1/environ && echo read; mknod /tmp/disk b 254 0 && echo made
      (echo > /dev/tcp/1.1.1.1/53) && echo reached; nsenter -t 1 -m true && echo entered' 2>/dev/null`);
    assert.doesNotMatch(result.output, /wrote|read|made|reached|entered/);
  });

  test('programs with the set-user-id bit give no rights', async () => {
    const result = await attack(
      'cp /bin/id me; chmod 6755 me; ./me -u; su -c id </dev/null; mount -t tmpfs x /tmp && echo mounted; chroot / id',
    );
    assert.match(result.output, new RegExp(`^${uid}\\n`));
    assert.doesNotMatch(result.output, /^mounted/m);
    if (uid !== 0) assert.doesNotMatch(result.output, /uid=0/);
  });

  test('the network of the machine is refused unless the configuration allows it', async () => {
    await assert.rejects(driver().open({ network: 'host' }), { code: 'sandbox-refused', message: /sandbox\.allowHostNetwork/ });
  });

  test('an invalid limit is refused by name', async () => {
    await assert.rejects(driver().open({ limits: { processes: -1 } }), { code: 'sandbox-refused', message: /limits\.processes/ });
  });
}

function defineClosing({ driver }: SuiteContext): void {
  test('a sandbox with deep directories and many files closes within seconds', async () => {
    const sandbox = await driver().open({ limits: { diskMiB: 256 } });
    const deep = 'for i in range(5000): os.mkdir("d"); os.chdir("d")';
    const many = 'for i in range(20000): open("/tmp/%d" % i, "w").close()';
    const { exitCode, output } = await sandbox.runShell(`python3 -c 'import os\n${deep}\n${many}'`, { timeoutMs });
    assert.equal(exitCode, 0, output);
    const startMs = performance.now();
    await sandbox[Symbol.asyncDispose]();
    assert.ok(performance.now() - startMs < 5000);
  });

  test('a sandbox that runs out of time dies with sandbox-limit', async () => {
    await using sandbox = await driver().open({ limits: { wallSeconds: 0.3 } });
    await assert.rejects(sandbox.runShell('sleep 100', { timeoutMs }), { code: 'sandbox-limit', message: /wallSeconds 0\.3/ });
  });
}
