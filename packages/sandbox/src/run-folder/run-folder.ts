// The run folder of a machine's workers. Each sandbox has a subfolder named after the process that owns it (pid and start time), created
// before anything is started, so a sweep can find and remove what a dead worker left behind. Processes are identified by pid and start
// time, or by having the sandbox's folder in their arguments or mounts; never by name.

import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { sleep } from '@millrace/base/clock';
import { readProcess, sendSignal } from '@millrace/base/processes';
import { RolloutError, type SandboxId, sandboxId } from '@millrace/protocol';
import { linkFolder } from '../layout.ts';
import { thawProcess } from '../limits/cgroups.ts';
import { removeRecordedGroups } from '../limits/limits.ts';
import { removeTree } from './remove-tree.ts';

const namePattern = /^sb-(\d+)-([0-9a-z]+)-[0-9a-z]+$/;
const killWaitMs = 5_000;
/** The kernel's limit for the path of a Unix socket, without the terminating zero. */
const longestSocketPath = 107;
/** The longest path of a sandbox's socket below the run folder. */
const longestSocketTail = '/sb-4194304-zzzzzzz-01234567/link/socket';

/** The length of the longest path that a sandbox's socket can have in this run folder, and the kernel's limit for it. */
export function measureSocketPath(runDir: string): { readonly bytes: number; readonly maxBytes: number } {
  return { bytes: Buffer.byteLength(resolve(runDir) + longestSocketTail), maxBytes: longestSocketPath };
}

/** Creates the run folder if needed and returns its absolute path. */
export async function openRunFolder(path: string): Promise<string> {
  const runDir = resolve(path);
  const { bytes, maxBytes } = measureSocketPath(runDir);
  if (bytes > maxBytes) {
    const message = `the run directory ${runDir} is ${bytes - maxBytes} bytes too long for a Unix socket: choose a shorter one`;
    throw new RolloutError('sandbox-start-failed', message);
  }
  await mkdir(runDir, { recursive: true, mode: 0o700 });
  return runDir;
}

/** A new name in the run folder that carries this process's identity: a sweep removes it once this process is dead. */
export function makeSandboxId(): SandboxId {
  const startTicks = readProcess(process.pid)?.startTicks ?? 0;
  const unique = Math.random().toString(36).slice(2, 10).padEnd(8, '0');
  return sandboxId.parse(`sb-${process.pid}-${startTicks.toString(36)}-${unique}`);
}

/** With the folder that it shares with its executor. */
export async function makeSandboxFolder(runDir: string): Promise<{ id: SandboxId; folder: string }> {
  const id = makeSandboxId();
  const folder = join(runDir, id);
  await mkdir(join(folder, 'link'), { recursive: true, mode: 0o700 });
  return { id, folder };
}

/** Records the first process inside the sandbox: killing it kills all of them. */
export async function recordProcess(folder: string, pid: number, files: FileWriter): Promise<void> {
  const startTicks = readProcess(pid)?.startTicks;
  const path = join(folder, 'process');
  if (startTicks !== undefined && (await files.write(path, `${pid} ${startTicks}`)) !== undefined)
    await writeFile(path, `${pid} ${startTicks}`);
}

interface FileWriter {
  /** Returns the path if that failed. */
  write(path: string, text: string): Promise<string | undefined>;
}

/** Returns how many sandboxes of dead owners were removed. Any number of workers may sweep at once: one of them removes each folder. */
export async function sweepRunFolder(runDir: string): Promise<number> {
  await killOrphans();
  let count = 0;
  for (const name of (await readdir(runDir).catch(isGone)) || []) {
    const [, pid, start] = namePattern.exec(name) ?? [];
    if (pid === undefined || start === undefined || isAlive(Number(pid), Number.parseInt(start, 36))) continue;
    // Renaming makes the folder ours: if we die, it is an orphan again. A second worker finds nothing to rename.
    const mine = join(runDir, makeSandboxId());
    if (!(await rename(join(runDir, name), mine).then(() => true, isGone))) continue;
    await killRecordedProcess(mine);
    await killHolders(join(runDir, name));
    await killHolders(mine); // mounts follow the rename
    await removeRecordedGroups(mine);
    await removeTree(mine);
    count += 1;
  }
  return count;
}

/** How the link folder of a sandbox is named in the arguments of its holder, in any run folder. */
const linkArgument = new RegExp(`\\0[^\\0]*/sb-(\\d+)-([0-9a-z]+)-[0-9a-z]+/link\\0${linkFolder}\\0`);

/**
 * Kills what is left of holders whose owner is dead, in every run folder. A bwrap that is killed with its worker while it prepares the
 * namespaces of its child leaves that child waiting forever, perhaps in a run folder that is never opened again.
 */
async function killOrphans(): Promise<void> {
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const [, owner, start] = linkArgument.exec(await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')) ?? []; // it has ended
    if (owner === undefined || start === undefined || isAlive(Number(owner), Number.parseInt(start, 36))) continue;
    if (!(await isOfThisMachine(pid))) continue;
    sendSignal(Number(pid), 'SIGKILL');
    await thawProcess(Number(pid));
  }
}

/**
 * Whether the process was started in our own PID namespace: it, or its parent if it is the first of a new one, has no other pid. In the
 * namespace of a container, the owner of a sandbox has another pid than the one that we would look for.
 */
async function isOfThisMachine(pid: string): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => ''); // it has ended
  if (/^NSpid:\t\d+$/m.test(status)) return true;
  const parent = /^PPid:\t(\d+)$/m.exec(status)?.[1];
  return /^NSpid:\t\d+$/m.test(await readFile(`/proc/${parent}/status`, 'utf8').catch(() => ''));
}

function isAlive(pid: number, startTicks: number): boolean {
  return readProcess(pid)?.startTicks === startTicks;
}

function isGone(error: NodeJS.ErrnoException): false {
  if (error.code !== 'ENOENT') throw error;
  return false;
}

async function killRecordedProcess(folder: string): Promise<void> {
  const text = await readFile(join(folder, 'process'), 'utf8').catch(() => ''); // the owner died before it recorded one
  const [pid = 0, startTicks = 0] = text.split(' ').map(Number);
  if (pid <= 0 || !isAlive(pid, startTicks)) return;
  sendSignal(pid, 'SIGKILL');
  for (let waitedMs = 0; isAlive(pid, startTicks) && waitedMs < killWaitMs; waitedMs += 10) await sleep(10); // not our child: it has no event
}

/**
 * Kills every process that has the sandbox's folder in its arguments or mounts, even if its owner died in the middle of starting it. A
 * holder that dies early leaves a child that waits for it forever, or file system servers.
 */
export async function killHolders(folder: string): Promise<void> {
  const read = (pid: string, file: string) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => ''); // it has ended
  const part = `/${basename(folder)}/`; // wherever its namespace sees the run folder
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    if (!(await read(pid, 'cmdline')).includes(part) && !(await read(pid, 'mountinfo')).includes(part)) continue;
    sendSignal(Number(pid), 'SIGKILL');
    await thawProcess(Number(pid));
  }
}
