// The sandbox suite: programs, files, isolation, and how a sandbox ends.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeTempFolder } from '../../temp-folder.ts';
import { type SuiteContext, timeoutMs } from './context.ts';

export function definePrograms({ sandbox, driver }: SuiteContext): void {
  const bytes = Buffer.from(Array.from({ length: 1 << 16 }, (_, index) => (index * 7) & 0xff));

  test('a program gets its input, directory and environment, and its two outputs stay separate', async () => {
    const script = 'cat; pwd; echo "$GREETING $EXTRA" >&2; exit 5';
    const options = { stdin: bytes, cwd: '/tmp', env: { EXTRA: 'there' }, timeoutMs, capBytes: 1 << 20 };
    const result = await sandbox().exec(['bash', '-c', script], options);
    assert.deepEqual(result.stdout, Buffer.concat([bytes, Buffer.from('/tmp\n')]));
    assert.deepEqual([result.stderr.toString(), result.exitCode, result.timedOut], ['hello there\n', 5, false]);
  });

  test('a call returns when its program exits, even if a child still holds the pipes', async () => {
    const result = await sandbox().exec(['bash', '-c', 'sleep 1000 & echo done'], { timeoutMs });
    assert.deepEqual([result.stdout.toString(), result.exitCode], ['done\n', 0]);
  });

  test('a program that runs out of time is killed with its children', async () => {
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

  test('a program inherits no open files: it cannot reach the terminal of the shell', async () => {
    await sandbox().runShell('exit', { timeoutMs }); // the same for the terminal of a second shell
    await sandbox().runShell(':', { timeoutMs });
    const result = await sandbox().exec(['bash', '-c', 'readlink /proc/self/fd/*'], { timeoutMs });
    assert.match(result.stdout.toString(), /^socket:/);
    assert.doesNotMatch(result.stdout.toString(), /ptmx|pts/);
  });

  test('no process can open the files of a program again through /proc, to read or write what is not for it', async () => {
    const open = (how: string, file: number) => `(: ${how} /proc/$$/fd/${file}) 2>/dev/null && echo ${file} opened`;
    const attempts = [0, 1, 2].flatMap((file) => ['>', '<'].map((how) => open(how, file)));
    const result = await sandbox().exec(['bash', '-c', `${attempts.join('; ')}; echo end`], { timeoutMs });
    assert.equal(result.stdout.toString(), 'end\n');
  });

  test('the executor has few threads, however many cores the machine has: they count as processes of the sandbox', async () => {
    const result = await sandbox().exec(['bash', '-c', 'ls /proc/1/task | wc -l'], { timeoutMs });
    const threads = Number(result.stdout.toString());
    assert.ok(threads >= 1 && threads <= 12, `${threads} threads`);
  });

  test('output over the cap is cut off and counted', async () => {
    const result = await sandbox().exec(['bash', '-c', 'printf 1234567890'], { timeoutMs, capBytes: 4 });
    assert.deepEqual([result.stdout.toString(), result.cutBytes], ['1234', 6]);
  });

  test('a program that does not exist ends with 127', async () => {
    const result = await sandbox().exec(['no-such-program'], { timeoutMs });
    assert.equal(result.exitCode, 127);
    assert.match(result.stderr.toString(), /no-such-program/);
  });

  test('a program that cannot take its arguments or variables ends with 126, as in a shell', async () => {
    const long = 'x'.repeat(1 << 20);
    const calls = [
      [[long], {}],
      [[], { LONG: long }],
      [['a\0b'], {}],
      [[], { NULL: 'a\0b' }],
    ] as const;
    for (const [args, env] of calls) {
      const result = await sandbox().exec(['/bin/bash', '-c', ':', ...args], { env, timeoutMs });
      assert.equal(result.exitCode, 126);
      assert.notEqual(result.stderr.toString(), '');
    }
  });

  test('a file is read as it was written, its parent folders are created, and its mode is kept', async () => {
    await sandbox().writeFile('/workspace/a/b/file', bytes, { mode: 0o755 });
    assert.deepEqual(await sandbox().readFile('a/b/file', { maxBytes: bytes.length }), bytes);
    assert.equal((await sandbox().exec(['stat', '-c', '%a', '/workspace/a/b/file'], { timeoutMs })).stdout.toString(), '755\n');
  });

  test('a file is copied with a mode, and a folder made with one, once each and without a program', async () => {
    await using fresh = await driver().open({});
    await fresh.makeFolder('/tmp/new/folder', { mode: 0o700 });
    await fresh.copyFile('/bin/bash', '/tmp/new/folder/bash', { mode: 0o111 });
    const seen = await fresh.exec(['stat', '-c', '%a', '/tmp/new/folder', '/tmp/new/folder/bash'], { timeoutMs });
    assert.equal(seen.stdout.toString(), '700\n111\n');
    const said = await fresh.exec(['/tmp/new/folder/bash', '-c', 'echo $0 $#', 'one', 'two'], { timeoutMs });
    assert.equal(said.stdout.toString(), 'one 1\n');
    await assert.rejects(fresh.makeFolder('/tmp/new/folder'), { code: 'sandbox-refused' });
    await assert.rejects(fresh.copyFile('/bin/bash', '/tmp/new/folder/bash'), { code: 'sandbox-refused' });
    await assert.rejects(fresh.copyFile('/no/such', '/tmp/other'), { code: 'not-found' });
  });

  test('packing a large folder does not make other calls wait', async () => {
    await using fresh = await driver().open({});
    await fresh.exec(['bash', '-c', 'mkdir many; cd many; for i in {1..30000}; do : > $i; done'], { timeoutMs: 60_000 });
    const order: string[] = [];
    const packed = fresh.readFolder('many', { maxBytes: 1 << 26 }).then(() => order.push('folder'));
    const read = fresh.readFile('many/1', { maxBytes: 1 }).then(() => order.push('file'));
    await Promise.all([packed, read]);
    assert.deepEqual(order, ['file', 'folder']);
  });

  test('reading a missing file, a folder, a device or a pipe throws not-found; a file over the limit is refused', async () => {
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
  test('the network of the machine cannot be reached', async () => {
    const server = createServer((socket) => socket.end('reached'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const result = await run(`cat </dev/tcp/127.0.0.1/${port}; cat </dev/tcp/1.1.1.1/53`);
    server.close();
    assert.match(result.output, /Connection refused[\s\S]*Network is unreachable/);
  });

  test('files of the machine and of its users are not visible', async () => {
    await using folder = await makeTempFolder('secret');
    await writeFile(join(folder.path, 'secret'), 'treasure');
    const result = await run(`cat /etc/shadow ${folder.path}/secret ${process.cwd()}/package.json; ls ${homedir()} /home`);
    assert.doesNotMatch(result.output, /treasure|root:\S|millrace-workspace/);
  });

  test('files written outside the workspace stay in the sandbox, or are refused', async () => {
    await run('for folder in / /etc /usr /usr/bin /var /tmp /dev /opt; do echo x > $folder/millrace-escaped; done');
    await using other = await driver().open({});
    const seen = await other.runShell('find / -xdev -name "millrace-escape[d]"; find /tmp /dev -name "millrace-escape[d]"', { timeoutMs });
    assert.doesNotMatch(seen.output, /millrace-escaped/);
    for (const path of ['/', '/etc', '/usr', '/usr/bin', '/var', tmpdir(), '/dev', '/opt'])
      assert.ok(!existsSync(join(path, 'millrace-escaped')), path);
  });

  test('kernel settings cannot be changed', async () => {
    const files =
      '/proc/sys/kernel/core_pattern /proc/sys/vm/overcommit_memory /proc/sysrq-trigger $(find /sys -type f 2>/dev/null | head -n 50)';
    // Opens for writing but writes nothing: a driver that fails here must not harm the machine.
    const result = await run(`for file in ${files}; do (: >> $file) 2>/dev/null && echo $file; done; true`);
    assert.equal(result.output, '');
  });

  test('nothing of another sandbox is visible', async () => {
    await using other = await driver().open({});
    await other.writeFile('/workspace/mine', 'x');
    await other.writeFile('/tmp/mine', 'x');
    await other.runShell('sleep 4321 &', { timeoutMs });
    const result = await run('ls /workspace/mine /tmp/mine; find /run -type s; grep -lz "[4]321" /proc/[0-9]*/cmdline; true');
    assert.doesNotMatch(result.output.replace(/^ls: .*$/gm, ''), /mine|socket|cmdline/);
  });

  test('the user inside has no capabilities', async () => {
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

  test('a cancelled open throws the reason and leaves nothing behind', async () => {
    const cancel = new AbortController();
    const opening = driver().open({}, { signal: cancel.signal });
    setImmediate(() => cancel.abort(new Error('no longer wanted')));
    await assert.rejects(opening, /no longer wanted/);
  });

  test('a sweep does not touch sandboxes of living owners', async () => {
    await using sandbox = await driver().open({});
    assert.equal(await driver().sweep(), 0);
    assert.equal((await sandbox.runShell('echo here', { timeoutMs })).output, 'here\n');
  });
}
