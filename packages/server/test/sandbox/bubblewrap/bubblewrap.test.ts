// The bubblewrap driver under the contract suite, and what only it promises: how it fails to start, and that nothing outlives its owner.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { openBubblewrapDriver, probeBubblewrap, type SandboxDriver, sleep } from '@millrace/server';
import { defineSandboxSuite } from '@millrace/testkit';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;
const timeoutMs = 10_000;

describe('bubblewrap', { skip }, () => {
  let runDir: string;
  let driver: SandboxDriver;
  before(async () => {
    runDir = await mkdtemp(join(tmpdir(), 'millrace-'));
    driver = await openBubblewrapDriver({ runDir });
  });
  after(() => rm(runDir, { recursive: true, force: true }));

  defineSandboxSuite('bubblewrap', async () => driver);

  test('a driver without bwrap says so when a sandbox is opened', async () => {
    const broken = await openBubblewrapDriver({ runDir, bwrapPath: '/no/such/bwrap' });
    await assert.rejects(broken.open({}), { code: 'sandbox-start-failed', message: /\/no\/such\/bwrap: not found/ });
  });

  test('a sandbox that cannot start answers what bwrap said, and leaves no folder', async () => {
    const broken = await openBubblewrapDriver({ runDir, bwrapPath: '/bin/ls' });
    const before = await readdir(runDir);
    await assert.rejects(broken.open({}), { code: 'sandbox-start-failed', message: /unrecognized option '--unshare-all'/ });
    assert.deepEqual(await readdir(runDir), before);
  });

  test('a driver without Node, or with something else in its place, says so and leaves nothing', async () => {
    const before = await readdir(runDir);
    for (const nodePath of ['/no/such/node', '/etc/passwd', '/bin/false']) {
      const opening = openBubblewrapDriver({ runDir, nodePath });
      await assert.rejects(opening, { code: 'sandbox-start-failed', message: new RegExp(nodePath) });
    }
    assert.deepEqual(await readdir(runDir), before);
  });

  test('a run directory that is too long for a socket is refused by name', async () => {
    const long = join(runDir, 'x'.repeat(80));
    await assert.rejects(openBubblewrapDriver({ runDir: long }), { code: 'sandbox-start-failed', message: /too long for a Unix socket/ });
  });

  test('when the sandbox dies by itself, pending and later calls and the signal say so', async () => {
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

  test('many sandboxes open and close at once', async () => {
    const sandboxes = await Promise.all(Array.from({ length: 8 }, () => driver.open({})));
    const outputs = await Promise.all(sandboxes.map((sandbox, index) => sandbox.runShell(`echo ${index}`, { timeoutMs })));
    assert.deepEqual(
      outputs.map(({ output }) => output),
      sandboxes.map((_, index) => `${index}\n`),
    );
    await Promise.all(sandboxes.map((sandbox) => sandbox[Symbol.asyncDispose]()));
    assert.deepEqual(await readdir(runDir).then(sandboxesIn), []);
  });

  test('two drivers on one fresh run directory share the executor files', async () => {
    const fresh = await mkdtemp(join(tmpdir(), 'millrace-'));
    await Promise.all(Array.from({ length: 4 }, () => openBubblewrapDriver({ runDir: fresh })));
    assert.deepEqual((await readdir(fresh)).map((name) => name.replace(/-.*/, '')).sort(), ['executor', 'program']);
    await rm(fresh, { recursive: true });
  });

  test('no sandbox outlives its owner: after kill -9 no process is left, and one sweep of several removes the folders', async () => {
    const owner = await startOwner(runDir);
    assert.equal(sandboxesIn(await readdir(runDir)).length, 2);
    owner.kill('SIGKILL');
    await once(owner, 'exit');
    await waitUntilNone('millrace-survivor');
    const counts = await Promise.all([driver.sweep(), driver.sweep(), driver.sweep()]);
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      2,
    );
    assert.deepEqual(await readdir(runDir).then(sandboxesIn), []);
  });

  test('a recorded process of a dead owner is killed only if its start time is the recorded one', async () => {
    const bystander = spawn('sleep', ['1000']);
    const victim = spawn('sleep', ['1000']);
    await makeOrphan(runDir, 'sb-999999-1-a', `${bystander.pid} 1`);
    await makeOrphan(runDir, 'sb-999999-1-b', `${victim.pid} ${await readStart(victim)}`);
    const [count] = await Promise.all([driver.sweep(), once(victim, 'exit')]);
    assert.equal(count, 2);
    assert.equal(bystander.exitCode ?? bystander.signalCode, null);
    bystander.kill();
  });

  test('a starter that is stuck half-way, its owner dead, is swept by the folder in its arguments', async () => {
    const folder = join(runDir, 'sb-999999-1-c');
    await makeOrphan(runDir, 'sb-999999-1-c', '');
    const stuck = spawn('bash', ['-c', 'read -r', 'bash', `${folder}/workspace`]);
    await Promise.all([once(stuck, 'exit'), driver.sweep()]);
    assert.equal(stuck.signalCode, 'SIGKILL');
  });

  test('trees that are closed, deep or full of links are removed, and links are not followed', async () => {
    const outside = await mkdtemp(join(tmpdir(), 'outside-'));
    await writeFile(join(outside, 'kept'), '');
    const sandbox = await driver.open({});
    const deep = 'for i in {1..60}; do mkdir $(printf "%0200d" $i) && cd $(printf "%0200d" $i); done; cd /workspace';
    await sandbox.runShell(`ln -s ${outside} link; mkdir -p a/b/c; chmod 0 a/b/c a/b a; ${deep}`, { timeoutMs });
    await sandbox[Symbol.asyncDispose]();
    assert.ok(!(await readdir(runDir)).includes(sandbox.id));
    assert.deepEqual(await readdir(outside), ['kept']);
    await rm(outside, { recursive: true });
  });
});

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

/** A process that owns two sandboxes with children of every stubborn kind, and has said so. */
async function startOwner(runDir: string): Promise<ChildProcess> {
  const program = `
    import { openBubblewrapDriver } from '@millrace/server';
    const driver = await openBubblewrapDriver({ runDir: ${JSON.stringify(runDir)} });
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

/** The kernel ends them; they are nobody's children here, so there is no event to wait for. */
async function waitUntilNone(word: string): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
    const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
    if (!lines.some((line) => line.startsWith(word))) return;
    await sleep(10);
  }
  assert.fail(`a process named ${word} is still there`);
}
