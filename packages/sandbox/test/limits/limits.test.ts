// Limits of a sandbox: the settings of control groups of both versions, where the groups are created, and that none is left behind.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { availableParallelism } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { silentLog } from '@millrace/base/log';
import { FakeClock, makeTempFolder, type TempFolder } from '@millrace/testkit/plain';
import { openBubblewrapDriver } from '../../src/bubblewrap/bubblewrap.ts';
import { probeBubblewrap } from '../../src/bubblewrap/probe.ts';
import { sandboxConfig } from '../../src/config.ts';
import { findExecutor } from '../../src/executor/executor-files.ts';
import { openBusyWatch } from '../../src/limits/busy-watch.ts';
import { findCgroups, parseOwnGroups, renderSettings } from '../../src/limits/cgroups.ts';
import type { Confinement } from '../../src/limits/limits.ts';
import { openLimiter } from '../../src/limits/limits.ts';
import { renderEntry } from '../../src/limits/rlimits.ts';

const { limits } = sandboxConfig.parse({ limits: { cpus: 1.5, memoryMiB: 512, diskMiB: 512, processes: 100 } });
const limiter = await openLimiter({ program: await findExecutor(), log: silentLog });
const has = (name: string) => limiter.bases.some(({ controller }) => controller === name);
const groupSkip = has('memory') && has('pids') ? false : 'this user cannot create control groups here';
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

  test('version 1 gets a quota, both memory limits, and pids.max', () => {
    assert.deepEqual(files('cpu', 1), ['cpu.cfs_period_us 100000', 'cpu.cfs_quota_us 150000']);
    assert.deepEqual(files('memory', 1), ['memory.limit_in_bytes 1073741824', 'memory.memsw.limit_in_bytes 1073741824']);
    assert.deepEqual(files('pids', 1), ['pids.max 124']);
  });

  test('groups are created below our own group, in version 1, in version 2, and with both mounted', () => {
    const v1 = (name: string, root = '/') => `35 31 0:32 ${root} /sys/fs/cgroup/${name} rw - cgroup cgroup rw,${name}`;
    const v2 = '41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw';
    const folders = (cgroup: string, mounts: string[]) =>
      parseOwnGroups(cgroup, mounts.join('\n')).map(({ folder, version }) => [version, folder]);
    assert.deepEqual(folders('4:memory:/job/7\n1:cpu,cpuacct:/\n0::/user', [v1('memory'), v1('cpu,cpuacct'), v2]), [
      [1, '/sys/fs/cgroup/cpu,cpuacct'],
      [1, '/sys/fs/cgroup/memory/job/7'],
      [2, '/sys/fs/cgroup/unified/user'],
      [1, '/sys/fs/cgroup/cpu,cpuacct'],
    ]);
    const entered = folders('0::/job/millrace-workers', ['41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw']);
    assert.deepEqual(new Set(entered.map(String)), new Set(['2,/sys/fs/cgroup/job']), 'what has entered finds the same folder again');
    assert.deepEqual(folders('4:memory:/docker/x/y', [v1('memory', '/docker/x')]), [[1, '/sys/fs/cgroup/memory/y']]);
    assert.deepEqual(folders('', []), []);
  });
});

describe('a confinement', { skip: groupSkip }, () => {
  let temp: TempFolder;
  let runDir: string;
  before(async () => {
    temp = await makeTempFolder('millrace');
    runDir = temp.path;
  });
  after(async () => {
    for (const { remove } of made) await remove();
    await temp[Symbol.asyncDispose]();
  });

  const made: Confinement[] = [];
  async function confine(id: string) {
    const folder = join(runDir, id);
    await mkdir(folder);
    const confinement = limiter.confine({ id: `${id}-${process.pid}`, folder }, { ...limits, memoryMiB: 384, diskMiB: 1 });
    made.push(confinement);
    return { folder, confinement };
  }

  test('is in the group of all sandboxes, which has half the weight of the group of the workers', {
    skip: !has('cpu'),
  }, async () => {
    const { version, folder } = limiter.bases.find(({ controller }) => controller === 'cpu') ?? assert.fail();
    assert.equal(basename(folder), 'millrace-sandboxes');
    const weight = Number(await readFile(join(folder, version === 1 ? 'cpu.shares' : 'cpu.weight'), 'utf8'));
    assert.equal(weight, version === 1 ? 1024 * Math.min(64, availableParallelism()) : 100);
    assert.match(await readFile('/proc/self/cgroup', 'utf8'), /\/millrace-workers$/m, 'this process is next to them');
    const own = join(dirname(folder), 'millrace-workers', version === 1 ? 'cpu.shares' : 'cpu.weight');
    assert.equal(Number(await readFile(own, 'utf8')), 2 * weight, 'with twice the weight');
  });

  test('is scheduled as idle while it uses more than half a core, and as usual afterwards', { skip: !has('cpu') }, async () => {
    const { confinement } = await confine('busy');
    const name = `busy-${process.pid}`;
    const { version, folder } = limiter.bases.find(({ controller }) => controller === 'cpu') ?? assert.fail();
    const clock = new FakeClock();
    const end = openBusyWatch(limiter.bases, clock).add(name);
    const isIdle = async () => (await readFile(join(folder, name, 'cpu.idle'), 'utf8')).trim();
    const [file = '', ...args] = confinement.enter({ command: ['sh', '-c', 'while :; do :; done'], reportsPid: false });
    const spinner = spawn(file, args);
    const counted = limiter.bases.find(({ controller }) => controller === (version === 1 ? 'cpuacct' : 'cpu')) ?? assert.fail();
    const usage = join(counted.folder, name, version === 1 ? 'cpuacct.usage' : 'cpu.stat');
    const readUsage = () => readFile(usage, 'utf8').catch(() => '0'); // it has not made its groups yet
    while (Number(/\d+/.exec(await readUsage())) / (version === 1 ? 1e6 : 1e3) < 600) await sleep(20);
    clock.advance(1000);
    assert.equal(await isIdle(), '1');
    spinner.kill('SIGSTOP');
    clock.advance(1000);
    clock.advance(1000);
    assert.equal(await isIdle(), '0');
    end();
    await confinement.remove();
  });

  test('is found by many openings at the same time', async () => {
    const found = await Promise.all(Array.from({ length: 16 }, () => findCgroups({ enter: false })));
    assert.deepEqual(new Set(found.map((bases) => bases.length)), new Set([limiter.bases.length]));
  });

  test('holds from the first instruction; running out of memory is blamed on the agent, and no group is left behind', async () => {
    const { confinement } = await confine('bomb');
    const [file = '', ...args] = confinement.enter({ command: ['python3', '-c', 'x = bytearray(10**10)'], reportsPid: false });
    const [, signal] = await once(spawn(file, args), 'exit');
    assert.equal(signal, 'SIGKILL');
    assert.equal((await confinement.explainEnd('exit 137'))?.code, 'sandbox-limit');
    assert.equal(await confinement.explainEnd('exit 139'), undefined);
    assert.equal((await confinement.explainEnd('exit 192'))?.code, 'sandbox-killed');
    await confinement.remove();
    await confinement.remove();
    await assertNone(`bomb-${process.pid}`);
  });

  test('a SIGKILL without memory pressure is not blamed on the agent', async () => {
    const { confinement } = await confine('calm');
    assert.equal(await confinement.explainEnd('exit 137'), undefined);
    await confinement.remove();
  });

  test('a sweep kills all processes in the groups of a dead owner, and removes the groups', { skip }, async (context) => {
    const driver = await openBubblewrapDriver({ runDir, log: silentLog });
    const id = 'sb-999999-1-z';
    const { folder, confinement } = await confine(id);
    assert.equal(folder, join(runDir, id));
    const [file = '', ...args] = confinement.enter({ command: ['sleep', '1000'], reportsPid: false });
    const sleeper = spawn(file, args);
    const bystander = spawn('sleep', ['1000']);
    context.after(() => bystander.kill());
    await Promise.all([once(sleeper, 'spawn'), once(bystander, 'spawn')]);
    for (const base of limiter.bases) {
      const list = join(base.folder, `${id}-${process.pid}`, 'cgroup.procs');
      while (!(await readFile(list, 'utf8').catch(() => '')).split('\n').includes(String(sleeper.pid))) await sleep(10);
    }
    const [[, signal]] = await Promise.all([once(sleeper, 'exit'), driver.sweep()]);
    assert.equal(signal, 'SIGKILL');
    await assertNone(`${id}-${process.pid}`);
    assert.equal(bystander.exitCode ?? bystander.signalCode, null);
  });

  async function assertNone(name: string): Promise<void> {
    for (const { folder } of limiter.bases) await assert.rejects(access(join(folder, name)), { code: 'ENOENT' });
  }
});

describe('the network of the machine', { skip }, () => {
  test('is available only to a task that asks for it, and only if the configuration allows it', async () => {
    await using temp = await makeTempFolder('millrace');
    const runDir = temp.path;
    const server = createServer((socket) => socket.end('reached\n'));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const driver = await openBubblewrapDriver({ runDir, log: silentLog, config: sandboxConfig.parse({ allowHostNetwork: true }) });
    const reach = async (network: 'none' | 'host') => {
      await using sandbox = await driver.open({ network });
      return (await sandbox.runShell(`cat </dev/tcp/127.0.0.1/${port}`, { timeoutMs: 10_000 })).output;
    };
    assert.equal(await reach('host'), 'reached\n');
    assert.match(await reach('none'), /Connection refused/);
    server.close();
  });
});

describe('several workers on one machine', { skip }, () => {
  test('a sweep does not touch sandboxes of a living process or of another run folder', async () => {
    await using sharedFolder = await makeTempFolder('millrace');
    await using otherFolder = await makeTempFolder('millrace');
    const [shared, other] = [sharedFolder.path, otherFolder.path];
    const owners = await Promise.all([startOwner(shared), startOwner(other)]);
    const driver = await openBubblewrapDriver({ runDir: shared, log: silentLog });
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
    assert.equal(await (await openBubblewrapDriver({ runDir: other, log: silentLog })).sweep(), 1);
    assert.deepEqual(
      (await readdir(other)).filter((name) => name.startsWith('sb-')),
      [],
    );
  });
});

test('a command enters groups of both versions and keeps its own arguments', async () => {
  await using firstFolder = await makeTempFolder('a group');
  await using secondFolder = await makeTempFolder('a group');
  const [first, second] = [firstFolder.path, secondFolder.path];
  await writeFile(join(first, 'tasks'), '');
  await writeFile(join(second, 'cgroup.procs'), '');
  const script = 'read -r task < "$0/tasks"; read -r pid < "$1/cgroup.procs"; test "$task $pid" = "0 $$"; echo $? "$2"';
  const [file = '', ...args] = renderEntry(
    { program: await findExecutor(), groups: ['group', first, 'group', second], limits, isMemoryBounded: true },
    {
      command: ['sh', '-c', script, first, second, '--'],
      reportsPid: false,
    },
  );
  const child = spawn(file, args);
  const [chunk] = await once(child.stdout, 'data');
  assert.equal(String(chunk), '0 --\n');
});

/** Starts a process that owns one sandbox and runs a command in its shell for each line of input. */
async function startOwner(runDir: string): Promise<ChildProcess> {
  const program = `
    import { silentLog } from '@millrace/base/log';
    import { openBubblewrapDriver } from '@millrace/sandbox';
    const driver = await openBubblewrapDriver({ runDir: ${JSON.stringify(runDir)}, log: silentLog });
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
