// Limits of a sandbox: what is written into control groups of both versions, where they are made, and that none is left behind.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { availableParallelism, tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { openBubblewrapDriver, openLimiter, probeBubblewrap, sandboxConfig } from '@millrace/server';
import { parseOwnGroups, renderSettings } from '../../../src/sandbox/limits/cgroups.ts';
import type { Confinement } from '../../../src/sandbox/limits/limits.ts';
import { renderEntry } from '../../../src/sandbox/limits/rlimits.ts';

const { limits } = sandboxConfig.parse({ limits: { cpus: 1.5, memoryMiB: 512, diskMiB: 512, processes: 100 } });
const limiter = await openLimiter();
const has = (name: string) => limiter.bases.some(({ controller }) => controller === name);
const groupSkip = has('memory') && has('pids') ? false : 'this user cannot make control groups here';
const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;

describe('control groups', () => {
  const files = (controller: 'cpu' | 'memory' | 'pids', version: 1 | 2) =>
    renderSettings({ controller, version }, limits).map(({ file, value }) => `${file} ${value}`);

  test('version 2 gets cpu.max, memory.max without swap, and pids.max', () => {
    assert.deepEqual(files('cpu', 2), ['cpu.max 150000 100000']);
    assert.deepEqual(files('memory', 2), ['memory.max 1073741824', 'memory.swap.max 0']);
    assert.deepEqual(files('pids', 2), ['pids.max 124']);
  });

  test('version 1 gets a quota, both limits of memory, and pids.max', () => {
    assert.deepEqual(files('cpu', 1), ['cpu.cfs_period_us 100000', 'cpu.cfs_quota_us 150000']);
    assert.deepEqual(files('memory', 1), ['memory.limit_in_bytes 1073741824', 'memory.memsw.limit_in_bytes 1073741824']);
    assert.deepEqual(files('pids', 1), ['pids.max 124']);
  });

  test('they are made below our own group, in version 1, in version 2, and in both at once', () => {
    const v1 = (name: string, root = '/') => `35 31 0:32 ${root} /sys/fs/cgroup/${name} rw - cgroup cgroup rw,${name}`;
    const v2 = '41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw';
    const folders = (cgroup: string, mounts: string[]) =>
      parseOwnGroups(cgroup, mounts.join('\n')).map(({ folder, version }) => [version, folder]);
    assert.deepEqual(folders('4:memory:/job/7\n1:cpu,cpuacct:/\n0::/user', [v1('memory'), v1('cpu,cpuacct'), v2]), [
      [1, '/sys/fs/cgroup/cpu,cpuacct'],
      [1, '/sys/fs/cgroup/memory/job/7'],
      [2, '/sys/fs/cgroup/unified/user'],
    ]);
    assert.deepEqual(folders('4:memory:/docker/x/y', [v1('memory', '/docker/x')]), [[1, '/sys/fs/cgroup/memory/y']]);
    assert.deepEqual(folders('', []), []);
  });
});

describe('a confinement', { skip: groupSkip }, () => {
  let runDir: string;
  before(async () => {
    runDir = await mkdtemp(join(tmpdir(), 'millrace-'));
  });
  after(async () => {
    for (const { remove } of made) await remove();
    await rm(runDir, { recursive: true });
  });

  const made: Confinement[] = [];
  async function confine(id: string) {
    const folder = join(runDir, id);
    await mkdir(folder);
    const confinement = await limiter.confine({ id: `${id}-${process.pid}`, folder }, { ...limits, memoryMiB: 384, diskMiB: 1 });
    made.push(confinement);
    return { folder, confinement };
  }

  test('is in the group that all sandboxes share, which weighs on each core what one process weighs', { skip: !has('cpu') }, async () => {
    const { version, folder } = limiter.bases.find(({ controller }) => controller === 'cpu') ?? assert.fail();
    assert.equal(basename(folder), 'millrace-sandboxes');
    const weight = Number(await readFile(join(folder, version === 1 ? 'cpu.shares' : 'cpu.weight'), 'utf8'));
    assert.equal(weight, (version === 1 ? 1024 : 100) * availableParallelism());
  });

  test('holds from the first instruction on; an end for want of memory is its own, and nothing of it is left', async () => {
    const { confinement } = await confine('bomb');
    const [file = '', ...args] = confinement.enter(['python3', '-c', 'x = bytearray(10**10)']);
    const [, signal] = await once(spawn(file, args), 'exit');
    assert.equal(signal, 'SIGKILL');
    assert.equal((await confinement.explainEnd('exit 137'))?.code, 'sandbox-limit');
    assert.equal(await confinement.explainEnd('exit 139'), undefined);
    assert.equal((await confinement.explainEnd('exit 192'))?.code, 'sandbox-killed');
    await confinement.remove();
    await confinement.remove();
    await assertNone(`bomb-${process.pid}`);
  });

  test('an end by SIGKILL without want of memory is not the agent to blame for', async () => {
    const { confinement } = await confine('calm');
    assert.equal(await confinement.explainEnd('exit 137'), undefined);
    await confinement.remove();
  });

  test('what is in the groups of a dead owner is killed by a sweep, whatever its name, and the groups are removed', { skip }, async () => {
    const driver = await openBubblewrapDriver({ runDir });
    const id = 'sb-999999-1-z';
    const { folder, confinement } = await confine(id);
    assert.equal(folder, join(runDir, id));
    const [file = '', ...args] = confinement.enter(['sleep', '1000']);
    const sleeper = spawn(file, args);
    const bystander = spawn('sleep', ['1000']);
    await Promise.all([once(sleeper, 'spawn'), once(bystander, 'spawn')]);
    const [[, signal]] = await Promise.all([once(sleeper, 'exit'), driver.sweep()]);
    assert.equal(signal, 'SIGKILL');
    await assertNone(`${id}-${process.pid}`);
    assert.equal(bystander.exitCode ?? bystander.signalCode, null);
    bystander.kill();
  });

  async function assertNone(name: string): Promise<void> {
    for (const { folder } of limiter.bases) await assert.rejects(access(join(folder, name)), { code: 'ENOENT' });
  }
});

describe('the network of the machine', { skip }, () => {
  test('is there for a task that asks for it where the configuration allows it, and for no other', async () => {
    const runDir = await mkdtemp(join(tmpdir(), 'millrace-'));
    const server = createServer((socket) => socket.end('reached\n'));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const driver = await openBubblewrapDriver({ runDir, config: sandboxConfig.parse({ allowHostNetwork: true }) });
    const reach = async (network: 'none' | 'host') => {
      await using sandbox = await driver.open({ network });
      return (await sandbox.runShell(`cat </dev/tcp/127.0.0.1/${port}`, { timeoutMs: 10_000 })).output;
    };
    assert.equal(await reach('host'), 'reached\n');
    assert.match(await reach('none'), /Connection refused/);
    server.close();
    await rm(runDir, { recursive: true });
  });
});

describe('neighbours on one machine', { skip }, () => {
  test('a sweep leaves alone the living sandboxes of another process and of another run folder', async () => {
    const [shared, other] = await Promise.all([mkdtemp(join(tmpdir(), 'millrace-')), mkdtemp(join(tmpdir(), 'millrace-'))]);
    const owners = await Promise.all([startOwner(shared), startOwner(other)]);
    const driver = await openBubblewrapDriver({ runDir: shared });
    await using own = await driver.open({});
    assert.equal(await driver.sweep(), 0);
    for (const owner of owners) assert.equal(await ask(owner), 'alive\n');
    owners[0]?.kill('SIGKILL');
    await once(owners[0] as ChildProcess, 'exit');
    assert.equal(await driver.sweep(), 1);
    assert.equal(await ask(owners[1] as ChildProcess), 'alive\n');
    assert.equal((await own.runShell('echo alive', { timeoutMs: 10_000 })).output, 'alive\n');
    owners[1]?.kill('SIGKILL');
    await once(owners[1] as ChildProcess, 'exit');
    assert.equal(await (await openBubblewrapDriver({ runDir: other })).sweep(), 1);
    assert.deepEqual(
      (await readdir(other)).filter((name) => name.startsWith('sb-')),
      [],
    );
    await Promise.all([shared, other].map((folder) => rm(folder, { recursive: true, force: true })));
  });
});

test('a command enters groups of both versions and keeps its own arguments', async () => {
  const [first, second] = [await mkdtemp(join(tmpdir(), 'a group-')), await mkdtemp(join(tmpdir(), 'a group-'))];
  await writeFile(join(first, 'tasks'), '');
  await writeFile(join(second, 'cgroup.procs'), '');
  const script = 'read -r task < "$0/tasks"; read -r pid < "$1/cgroup.procs"; test "$task $pid" = "0 $$"; echo $? "$2"';
  const [file = '', ...args] = renderEntry([first, second], limits, ['sh', '-c', script, first, second, '--']);
  const child = spawn(file, args);
  const [chunk] = await once(child.stdout, 'data');
  assert.equal(String(chunk), '0 --\n');
  for (const folder of [first, second]) await rm(folder, { recursive: true });
});

/** A process that owns one sandbox, and answers each line of input from its shell. */
async function startOwner(runDir: string): Promise<ChildProcess> {
  const program = `
    import { openBubblewrapDriver } from '@millrace/server';
    const driver = await openBubblewrapDriver({ runDir: ${JSON.stringify(runDir)} });
    const sandbox = await driver.open({});
    process.stdin.on('data', async () => process.stdout.write((await sandbox.runShell('echo alive', { timeoutMs: 10000 })).output));
    console.log('ready');`;
  const owner = spawn(process.execPath, ['--input-type=module', '-e', program], {
    cwd: import.meta.dirname,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await once(owner.stdout, 'data');
  return owner;
}

async function ask(owner: ChildProcess): Promise<string> {
  owner.stdin?.write('?\n');
  const [chunk] = owner.stdout ? await once(owner.stdout, 'data') : [];
  return String(chunk);
}
