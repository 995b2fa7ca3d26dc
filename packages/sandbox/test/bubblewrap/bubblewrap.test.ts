// The bubblewrap driver: the contract suite, how a start fails, and that nothing outlives its owner. `bubblewrap-user.test.ts` runs this file
// again as an ordinary user.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { defineSandboxSuite, makeTempFolder, type TempFolder } from '@millrace/testkit';
import { waitUntilNoneRuns } from '@millrace/testkit/plain';
import { openBubblewrapDriver } from '../../src/bubblewrap/bubblewrap.ts';
import { probeBubblewrap } from '../../src/bubblewrap/probe.ts';
import { sandboxConfig } from '../../src/config.ts';
import { agentUid } from '../../src/launch/agent-user.ts';
import type { SandboxDriver } from '../../src/sandbox.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;
const timeoutMs = 10_000;
const freezer = '/sys/fs/cgroup/freezer';
/** Only version 1 of control groups keeps a frozen process from dying. */
const canFreeze = process.getuid?.() === 0 && existsSync(join(freezer, 'cgroup.procs'));

describe('bubblewrap', { skip }, () => {
  let temp: TempFolder;
  let runDir: string;
  let driver: SandboxDriver;
  before(async () => {
    temp = await makeTempFolder('millrace');
    runDir = temp.path;
    driver = await openBubblewrapDriver({ runDir, log: silentLog });
  });
  after(() => temp[Symbol.asyncDispose]());

  defineSandboxSuite('bubblewrap', async () => driver, {
    hostUid: process.getuid?.() === 0 ? agentUid : undefined,
    call: () => ({ name: 'openBubblewrapDriver', options: { runDir }, spec: {} }),
  });

  test('a task that may create user namespaces can mount nothing in them', async () => {
    const open = await openBubblewrapDriver({ runDir, log: silentLog, config: sandboxConfig.parse({ allowUserNamespaces: true }) });
    const command =
      'unshare --map-root-user id -u; unshare --map-root-user --mount true; unshare --map-root-user --mount --propagation unchanged mount -t tmpfs x /tmp';
    await using allowed = await open.open({ namespaces: 'user' });
    assert.match((await allowed.runShell(command, { timeoutMs })).output, /^0\nunshare: .*\nmount: .*permi/);
    await using refused = await open.open({});
    assert.doesNotMatch((await refused.runShell(command, { timeoutMs })).output, /^0$/m);
  });

  test('the programs that people use work under the filter of system calls', async () => {
    await using sandbox = await driver.open({});
    for (const [program, script, seen] of commonPrograms) {
      if (!existsSync(`/usr/bin/${program}`)) continue;
      const { output } = await sandbox.runShell(script, { timeoutMs: 60_000 });
      assert.match(output, seen, program);
    }
  });

  test('without bwrap, opening a sandbox fails with the reason', async () => {
    const broken = await openBubblewrapDriver({ runDir, log: silentLog, bwrapPath: '/no/such/bwrap' });
    await assert.rejects(broken.open({}), { code: 'sandbox-start-failed', message: /\/no\/such\/bwrap: not found/ });
  });

  test('a sandbox that cannot start reports what bwrap printed, and leaves no folder', async () => {
    const broken = await openBubblewrapDriver({ runDir, log: silentLog, bwrapPath: '/bin/ls' });
    const before = await readdir(runDir);
    await assert.rejects(broken.open({}), { code: 'sandbox-start-failed', message: /unrecognized option '--unshare-all'/ });
    assert.deepEqual(await readdir(runDir), before);
  });

  test('a run directory whose path is too long for a socket is refused by name', async () => {
    const long = join(runDir, 'x'.repeat(80));
    await assert.rejects(openBubblewrapDriver({ runDir: long, log: silentLog }), {
      code: 'sandbox-start-failed',
      message: /too long for a Unix socket/,
    });
  });

  test('when a sandbox dies, pending and later calls and the `died` signal report it', async () => {
    const sandbox = await driver.open({});
    const pending = sandbox.runShell('sleep 1000', { timeoutMs });
    const rejected = assert.rejects(pending, { code: 'sandbox-died', message: /closed its connection/ });
    const died = once(sandbox.died, 'abort');
    process.kill(await readHolder(join(runDir, sandbox.id)), 'SIGKILL');
    await Promise.all([died, rejected]);
    await assert.rejects(sandbox.runShell('true', { timeoutMs }), { code: 'sandbox-died' });
    await sandbox[Symbol.asyncDispose]();
    assert.ok(!(await readdir(runDir)).includes(sandbox.id));
  });

  test('many sandboxes can be opened and closed at the same time', async () => {
    const sandboxes = await Promise.all(Array.from({ length: 8 }, () => driver.open({})));
    const outputs = await Promise.all(sandboxes.map((sandbox, index) => sandbox.runShell(`echo ${index}`, { timeoutMs })));
    assert.deepEqual(
      outputs.map(({ output }) => output),
      sandboxes.map((_, index) => `${index}\n`),
    );
    await Promise.all(sandboxes.map((sandbox) => sandbox[Symbol.asyncDispose]()));
    assert.deepEqual(await readdir(runDir).then(sandboxesIn), []);
  });

  test('drivers that open a new run directory at the same time share the executor files', async () => {
    await using folder = await makeTempFolder('millrace');
    const fresh = folder.path;
    await Promise.all(Array.from({ length: 4 }, () => openBubblewrapDriver({ runDir: fresh, log: silentLog })));
    assert.deepEqual((await readdir(fresh)).map((name) => name.replace(/-.*/, '')).sort(), ['executor', 'filter', 'program']);
  });

  test('bwrap is found on the PATH of the worker, wherever it is, although sandboxes start without one', async () => {
    await using folder = await makeTempFolder('programs');
    await chmod(folder.path, 0o755);
    const [program, uses] = [join(folder.path, 'bwrap'), join(folder.path, 'uses')];
    await writeFile(program, `#!/bin/sh\necho "$1" >> ${uses}\nexec /usr/bin/bwrap "$@"\n`, { mode: 0o755 });
    await writeFile(uses, '', { mode: 0o666 });
    await chmod(uses, 0o666);
    const { PATH: before = '' } = process.env;
    process.env.PATH = `${folder.path}:${before}`;
    try {
      const own = await openBubblewrapDriver({ runDir, log: silentLog });
      await writeFile(uses, '');
      await using sandbox = await own.open({});
      assert.equal((await sandbox.runShell('echo up', { timeoutMs })).output, 'up\n');
      assert.notEqual(await readFile(uses, 'utf8'), '');
    } finally {
      process.env.PATH = before;
    }
  });

  test('no sandbox outlives its owner: after kill -9 its processes end, and of several sweeps one removes each folder', async () => {
    const owner = await startOwner(runDir);
    assert.equal(sandboxesIn(await readdir(runDir)).length, 2);
    owner.kill('SIGKILL');
    await once(owner, 'exit');
    await waitUntilNoneRuns((text) => text.startsWith('millrace-survivor'));
    const counts = await Promise.all([driver.sweep(), driver.sweep(), driver.sweep()]);
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      2,
    );
    assert.deepEqual(await readdir(runDir).then(sandboxesIn), []);
  });

  test('a recorded process of a dead owner is killed only if its start time matches', async () => {
    const bystander = spawn('sleep', ['1000']);
    const victim = spawn('sleep', ['1000']);
    await makeOrphan(runDir, 'sb-999999-1-a', `${bystander.pid} 1`);
    await makeOrphan(runDir, 'sb-999999-1-b', `${victim.pid} ${await readStart(victim)}`);
    const [count] = await Promise.all([driver.sweep(), once(victim, 'exit')]);
    assert.equal(count, 2);
    assert.equal(bystander.exitCode ?? bystander.signalCode, null);
    bystander.kill();
  });

  test('a sweep finds a half-started sandbox of a dead owner by the folder in the arguments of its process', async () => {
    const folder = join(runDir, 'sb-999999-1-c');
    await makeOrphan(runDir, 'sb-999999-1-c', '');
    const stuck = spawn('bash', ['-c', 'read -r', 'bash', `${folder}/workspace`]);
    await Promise.all([once(stuck, 'exit'), driver.sweep()]);
    assert.equal(stuck.signalCode, 'SIGKILL');
  });

  if (canFreeze)
    test('a sandbox whose executor is frozen can be closed', async () => {
      const group = join(freezer, `millrace-test-${process.pid}`);
      await mkdir(join(group, 'inner'), { recursive: true });
      const sandbox = await driver.open({});
      await writeFile(join(group, 'inner/cgroup.procs'), String(await readHolder(join(runDir, sandbox.id))));
      await writeFile(join(group, 'freezer.state'), 'FROZEN');
      await sandbox[Symbol.asyncDispose]();
      assert.ok(!(await readdir(runDir)).includes(sandbox.id));
      for (const folder of [join(group, 'inner'), group]) await rmdir(folder);
    });

  test('folders that are inaccessible, deep or full of links are removed, and links are not followed', async () => {
    await using folder = await makeTempFolder('outside');
    const outside = folder.path;
    await writeFile(join(outside, 'kept'), '');
    const sandbox = await driver.open({});
    const deep = 'for i in {1..60}; do mkdir $(printf "%0200d" $i) && cd $(printf "%0200d" $i); done; cd /workspace';
    await sandbox.runShell(`ln -s ${outside} link; mkdir -p a/b/c; chmod 0 a/b/c a/b a; ${deep}`, { timeoutMs });
    await sandbox[Symbol.asyncDispose]();
    assert.ok(!(await readdir(runDir)).includes(sandbox.id));
    assert.deepEqual(await readdir(outside), ['kept']);
  });
});

const commonPrograms: readonly (readonly [program: string, script: string, seen: RegExp])[] = [
  [
    'python3',
    `python3 -c 'import concurrent.futures as f, os
if __name__ == "__main__": print(sum(f.ProcessPoolExecutor(2).map(abs, range(-9, 1))), sum(f.ThreadPoolExecutor(8).map(abs, range(-9, 1))))'`,
    /^45 45\n$/,
  ],
  [
    'gcc',
    `printf '#include <pthread.h>\n#include <stdio.h>\nvoid *f(void *x) { puts("thread"); return x; }\nint main() { pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0); }' > a.c && gcc -g -pthread a.c -o a && ./a`,
    /^thread\n$/,
  ],
  [
    'git',
    'git init -q r && cd r && git -c user.name=x -c user.email=x commit -q --allow-empty -m first && git log --oneline; cd ..',
    /first\n$/,
  ],
  ['node', `node -e 'new (require("worker_threads").Worker)("console.log(process.pid > 1)", { eval: true })'`, /^true\n$/],
  ['gdb', `gdb -q -batch -ex 'break main' -ex run -ex bt ./a 2>&1 | grep -c '#0  main'`, /^1\n$/],
  ['strace', `strace -f -e trace=write ./a 2>&1 | grep -c 'write(1'`, /^1\n$/],
  [
    'java',
    `printf 'public class A { public static void main(String[] x) throws Exception { Thread t = new Thread(() -> System.out.println("java")); t.start(); t.join(); } }' > A.java && java -Xmx64m A.java`,
    /java\n$/,
  ],
];

function sandboxesIn(names: string[]): string[] {
  return names.filter((name) => name.startsWith('sb-'));
}

async function readHolder(folder: string): Promise<number> {
  return Number((await readFile(join(folder, 'process'), 'utf8')).split(' ')[0]);
}

async function readStart(child: ChildProcess): Promise<string> {
  return (await readFile(`/proc/${child.pid}/stat`, 'utf8')).split(' ')[21] ?? '';
}

async function makeOrphan(runDir: string, name: string, record: string): Promise<void> {
  await mkdir(join(runDir, name));
  await writeFile(join(runDir, name, 'process'), record);
}

/** Starts a process that owns two sandboxes with detached background processes of several kinds, and waits until it is ready. */
async function startOwner(runDir: string): Promise<ChildProcess> {
  const program = `
    import { silentLog } from '@millrace/base/log';
    import { openBubblewrapDriver } from '@millrace/sandbox';
    const driver = await openBubblewrapDriver({ runDir: ${JSON.stringify(runDir)}, log: silentLog });
    for (let index = 0; index < 2; index += 1) {
      const sandbox = await driver.open({});
      const survivor = "bash -c 'exec -a millrace-survivor sleep 1000'";
      await sandbox.runShell(\`setsid \${survivor} & nohup \${survivor} & (setsid bash -c "(\${survivor} &)" &) ; true\`, { timeoutMs: 10000 });
      await sandbox.exec(['bash', '-c', survivor + ' &'], { timeoutMs: 10000 });
    }
    console.log('ready');`;
  const owner = spawn(process.execPath, ['--input-type=module', '-e', program], {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(owner.stdout, 'data');
  return owner;
}
