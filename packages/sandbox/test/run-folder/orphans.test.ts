// What a killed worker left half-started in one run folder is killed by the next sweep of any run folder, and nothing else is.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { readProcess } from '@millrace/base/processes';
import { makeTempFolder, type TempFolder } from '@millrace/testkit';
import { trialWalls } from '../../src/bubblewrap/arguments.ts';
import { probeBubblewrap } from '../../src/bubblewrap/probe.ts';
import { linkFolder } from '../../src/layout.ts';
import { sweepRunFolder } from '../../src/run-folder/run-folder.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;

/** The name of a sandbox whose owner has ended. */
async function nameOfDead(): Promise<string> {
  const owner = spawn('sleep', ['100']);
  const name = nameOf(owner.pid);
  owner.kill('SIGKILL');
  await once(owner, 'exit');
  return name;
}

function nameOf(owner: number | undefined): string {
  return `sb-${owner}-${readProcess(owner ?? 0)?.startTicks.toString(36)}-01234567`;
}

/** Waits before it prepares the namespaces of its child, which waits for it; both are returned once they do. */
async function startHalf(temp: TempFolder, name: string, before: readonly string[] = []): Promise<{ holder: ChildProcess; child: number }> {
  const link = join(temp.path, name, 'link');
  await mkdir(link, { recursive: true });
  const walls = [...trialWalls, '--die-with-parent', '--info-fd', '3', '--userns-block-fd', '4', '--ro-bind', link, linkFolder];
  const [file = '', ...args] = [...before, 'bwrap', ...walls, 'sleep', '100'];
  const holder = spawn(file, args, { stdio: ['ignore', 'ignore', 'inherit', 'pipe', 'pipe'] });
  const report = holder.stdio[3];
  assert.ok(report && 'read' in report);
  return { holder, child: JSON.parse(await text(report))['child-pid'] };
}

async function killHolder(holder: ChildProcess): Promise<void> {
  holder.kill('SIGKILL');
  await once(holder, 'exit');
}

async function waitUntilGone(pid: number): Promise<void> {
  while (readProcess(pid) !== undefined) await new Promise(setImmediate);
}

test('the child of a bwrap that died with its worker is killed by a sweep of another run folder', { skip }, async () => {
  await using temp = await makeTempFolder('millrace');
  await using other = await makeTempFolder('millrace');
  for (const wrapper of [[], ['env'], ['setpriv', '--clear-groups', '--']]) {
    if (wrapper[0] === 'setpriv' && process.getuid?.() !== 0) continue;
    const { holder, child } = await startHalf(temp, await nameOfDead(), wrapper);
    await killHolder(holder);
    assert.ok(readProcess(child), 'it waits for a holder that is dead');
    assert.equal(await sweepRunFolder(other.path), 0);
    await waitUntilGone(child);
  }
});

test('a bwrap that survived its worker is killed with its child', { skip }, async () => {
  await using temp = await makeTempFolder('millrace');
  await using other = await makeTempFolder('millrace');
  const { holder, child } = await startHalf(temp, await nameOfDead());
  const ended = once(holder, 'exit');
  await sweepRunFolder(other.path);
  await ended;
  await waitUntilGone(child);
});

test('a sandbox of a live worker is left alone, and so is a program that only names a sandbox', { skip }, async () => {
  await using temp = await makeTempFolder('millrace');
  await using other = await makeTempFolder('millrace');
  const { holder, child } = await startHalf(temp, nameOf(process.pid));
  const reader = spawn('sh', ['-c', 'read line', 'sh', join(temp.path, await nameOfDead(), 'link')], {
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  await sweepRunFolder(other.path);
  assert.ok(readProcess(child) && readProcess(holder.pid ?? 0) && readProcess(reader.pid ?? 0));
  reader.kill();
  process.kill(child, 'SIGKILL');
  await killHolder(holder);
});

test('a sandbox in the PID namespace of a container is left alone: its owner has another pid there', { skip }, async () => {
  await using other = await makeTempFolder('millrace');
  const link = join(other.path, await nameOfDead(), 'link');
  // A container is a PID namespace whose first process starts the worker, which starts the holder.
  const script = `sh -c 'echo started; read line' sh --ro-bind ${link} ${linkFolder} sleep; exit`;
  const container = spawn('unshare', ['--user', '--map-root-user', '--pid', '--fork', '--kill-child', 'sh', '-c', script]);
  await once(container.stdout, 'data');
  const found = findByArguments(`\0${link}\0${linkFolder}\0`);
  assert.equal(found.length, 1);
  await sweepRunFolder(other.path);
  assert.deepEqual(findByArguments(`\0${link}\0${linkFolder}\0`), found);
  await killHolder(container);
});

const owner = `import { silentLog } from '@millrace/base/log';
import { openBubblewrapDriver } from '@millrace/sandbox';
const driver = await openBubblewrapDriver({ runDir: process.argv[1], log: silentLog });
console.log('ready');
for (;;) await Promise.all([driver.open({}), driver.open({})]);`;

test('nothing is left of a worker that was killed at a random moment, after one sweep of another run folder', { skip }, async () => {
  await using temp = await makeTempFolder('millrace');
  await using other = await makeTempFolder('millrace');
  for (let round = 0; round < 3; round += 1) {
    const worker = spawn(process.execPath, ['--input-type=module', '-e', owner, temp.path], { stdio: ['pipe', 'pipe', 'inherit'] });
    await once(worker.stdout, 'data');
    await sleep(Math.random() * 100);
    await killHolder(worker);
    await sleep(500); // an executor that lost its worker ends by itself
    await sweepRunFolder(other.path);
    while (findByArguments(`/sb-${worker.pid}-`).length > 0) await sleep(10);
  }
  await sweepRunFolder(temp.path);
});

/** Pids, without those that have ended and only wait for their parent. */
function findByArguments(part: string): string[] {
  return readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && readArguments(pid).includes(part));
}

function readArguments(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  } catch {
    return ''; // it has ended
  }
}
