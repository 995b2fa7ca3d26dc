// The sandbox suite's part on the machine around the shell: programs, files, walls, and how a sandbox ends.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { type SuiteContext, timeoutMs } from './context.ts';

export function definePrograms({ sandbox }: SuiteContext): void {
  const bytes = Buffer.from(Array.from({ length: 1 << 16 }, (_, index) => (index * 7) & 0xff));

  test('a program gets its input, directory and environment, and its two outputs stay apart', async () => {
    const script = 'cat; pwd; echo "$GREETING $EXTRA" >&2; exit 5';
    const options = { stdin: bytes, cwd: '/tmp', env: { EXTRA: 'there' }, timeoutMs, capBytes: 1 << 20 };
    const result = await sandbox().exec(['bash', '-c', script], options);
    assert.deepEqual(result.stdout, Buffer.concat([bytes, Buffer.from('/tmp\n')]));
    assert.deepEqual([result.stderr.toString(), result.exitCode, result.timedOut], ['hello there\n', 5, false]);
  });

  test('a program that leaves a child with its pipes is answered when it exits', async () => {
    const result = await sandbox().exec(['bash', '-c', 'sleep 1000 & echo done'], { timeoutMs });
    assert.deepEqual([result.stdout.toString(), result.exitCode], ['done\n', 0]);
  });

  test('a program whose time is over is killed with its children', async () => {
    const result = await sandbox().exec(['bash', '-c', 'echo begun; sleep 1234; echo never'], { timeoutMs: 100 });
    assert.deepEqual([result.stdout.toString(), result.signal, result.timedOut], ['begun\n', 'SIGKILL', true]);
    const left = await sandbox().exec(['bash', '-c', 'grep -lz "[1]234" /proc/[0-9]*/cmdline'], { timeoutMs });
    assert.equal(left.stdout.toString(), '');
  });

  test('a cancelled program throws the reason', async () => {
    const cancel = new AbortController();
    const running = sandbox().exec(['sleep', '1000'], { timeoutMs, signal: cancel.signal });
    setImmediate(() => cancel.abort(new Error('no longer wanted')));
    await assert.rejects(running, /no longer wanted/);
  });

  test('a program has no file open but its own: the terminal of the shell is out of its reach', async () => {
    await sandbox().runShell('exit', { timeoutMs }); // and so is that of a shell after the first
    await sandbox().runShell(':', { timeoutMs });
    const result = await sandbox().exec(['bash', '-c', 'readlink /proc/self/fd/*'], { timeoutMs });
    assert.match(result.stdout.toString(), /^(socket|pipe):/);
    assert.doesNotMatch(result.stdout.toString(), /ptmx|pts/);
  });

  test('output past the cap is cut at its end and counted', async () => {
    const result = await sandbox().exec(['bash', '-c', 'printf 1234567890'], { timeoutMs, capBytes: 4 });
    assert.deepEqual([result.stdout.toString(), result.cutBytes], ['1234', 6]);
  });

  test('a program that is not there answers 127', async () => {
    const result = await sandbox().exec(['no-such-program'], { timeoutMs });
    assert.equal(result.exitCode, 127);
    assert.match(result.stderr.toString(), /no-such-program/);
  });

  test('a file comes back as it was written, folders above it are made, and its mode is kept', async () => {
    await sandbox().writeFile('/workspace/a/b/file', bytes, { mode: 0o755 });
    assert.deepEqual(await sandbox().readFile('a/b/file', { maxBytes: bytes.length }), bytes);
    assert.equal((await sandbox().exec(['stat', '-c', '%a', '/workspace/a/b/file'], { timeoutMs })).stdout.toString(), '755\n');
  });

  test('what is missing, a folder, a device or a pipe is not found; what is too large is refused', async () => {
    await sandbox().exec(['mkfifo', '/tmp/pipe'], { timeoutMs });
    for (const path of ['/no/such', '/tmp', '/dev/zero', '/tmp/pipe']) {
      await assert.rejects(sandbox().readFile(path, { maxBytes: 10 }), { code: 'not-found' }, path);
    }
    await sandbox().writeFile('eleven', '12345678901');
    await assert.rejects(sandbox().readFile('eleven', { maxBytes: 10 }), { code: 'artifact-too-large' });
    for (const path of ['/proc/nothing', '/tmp', '/tmp/pipe']) {
      await assert.rejects(sandbox().writeFile(path, 'x'), { code: 'sandbox-refused' }, path);
    }
  });
}

export function defineWalls({ run, driver, uid }: SuiteContext): void {
  test('there is no way to the network of the machine', async () => {
    const server = createServer((socket) => socket.end('reached'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const result = await run(`cat </dev/tcp/127.0.0.1/${port}; cat </dev/tcp/1.1.1.1/53`);
    server.close();
    assert.match(result.output, /Connection refused[\s\S]*Network is unreachable/);
  });

  test('the files of the machine and of its users are not there', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'secret-'));
    await writeFile(join(folder, 'secret'), 'treasure');
    const result = await run(`cat /etc/shadow ${folder}/secret ${process.cwd()}/package.json; ls ${homedir()} /home`);
    await rm(folder, { recursive: true });
    assert.doesNotMatch(result.output, /treasure|root:\S|millrace-workspace/);
  });

  test('what is written beside the workspace stays in the sandbox, or is refused', async () => {
    await run('for folder in / /etc /usr /usr/bin /var /tmp /dev /opt; do echo x > $folder/millrace-escaped; done');
    await using other = await driver().open({});
    const seen = await other.runShell('find / -xdev -name "millrace-escape[d]"; find /tmp /dev -name "millrace-escape[d]"', { timeoutMs });
    assert.doesNotMatch(seen.output, /millrace-escaped/);
    for (const path of ['/', '/etc', '/usr', '/usr/bin', '/var', tmpdir(), '/dev', '/opt'])
      assert.ok(!existsSync(join(path, 'millrace-escaped')), path);
  });

  test('the settings of the kernel cannot be changed', async () => {
    const files =
      '/proc/sys/kernel/core_pattern /proc/sys/vm/overcommit_memory /proc/sysrq-trigger $(find /sys -type f 2>/dev/null | head -n 50)';
    // Opened for writing, and nothing written: a wall with a hole must not harm whoever tests it.
    const result = await run(`for file in ${files}; do (: >> $file) 2>/dev/null && echo $file; done; true`);
    assert.equal(result.output, '');
  });

  test('nothing of another sandbox can be seen', async () => {
    await using other = await driver().open({});
    await other.writeFile('/workspace/mine', 'x');
    await other.writeFile('/tmp/mine', 'x');
    await other.runShell('sleep 4321 &', { timeoutMs });
    const result = await run('ls /workspace/mine /tmp/mine; find /run -type s; grep -lz "[4]321" /proc/[0-9]*/cmdline; true');
    assert.doesNotMatch(result.output.replace(/^ls: .*$/gm, ''), /mine|socket|cmdline/);
  });

  test('a user without rights runs inside', async () => {
    const { output } = await run('id -u; grep -E "Cap(Eff|Bnd)|NoNewPrivs" /proc/self/status');
    assert.equal(output, `${uid}\nCapEff:\t${'0'.repeat(16)}\nCapBnd:\t${'0'.repeat(16)}\nNoNewPrivs:\t1\n`);
  });
}

export function defineLife({ driver }: SuiteContext): void {
  test('closing is idempotent, and later calls throw sandbox-died', async () => {
    const sandbox = await driver().open({});
    await sandbox.runShell('setsid sleep 1000 & mkdir -m 0 closed; ln -s / root', { timeoutMs });
    const pending = sandbox.runShell('sleep 1000', { timeoutMs });
    const rejected = assert.rejects(pending, { code: 'sandbox-died' });
    await Promise.all([sandbox[Symbol.asyncDispose](), sandbox[Symbol.asyncDispose]()]);
    await rejected;
    await assert.rejects(sandbox.exec(['true'], { timeoutMs }), { code: 'sandbox-died' });
    assert.equal(sandbox.died.aborted, false);
  });

  test('an opening that is cancelled throws the reason and leaves nothing', async () => {
    const cancel = new AbortController();
    const opening = driver().open({}, { signal: cancel.signal });
    setImmediate(() => cancel.abort(new Error('no longer wanted')));
    await assert.rejects(opening, /no longer wanted/);
  });

  test('a sweep leaves the sandboxes of living owners alone', async () => {
    await using sandbox = await driver().open({});
    assert.equal(await driver().sweep(), 0);
    assert.equal((await sandbox.runShell('echo here', { timeoutMs })).output, 'here\n');
  });
}
