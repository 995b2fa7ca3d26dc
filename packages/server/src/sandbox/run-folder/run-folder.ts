// Sandboxes as written down on disk, so that none outlives its worker: a sandbox's folder is named after the process that owns it
// (pid and start time) before anything is started, and then holds the first process inside. Processes are known by pid and start
// time, or by having this very folder among their arguments or their mounts; never by their program's name.

import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { readProcess, sendSignal } from '@millrace/executor';
import { type SandboxId, sandboxId } from '@millrace/protocol';
import { sleep } from '../../base/clock.ts';
import { runProgram } from '../../base/run-program.ts';
import { removeRecordedGroups } from '../limits/limits.ts';

const namePattern = /^sb-(\d+)-([0-9a-z]+)-[0-9a-z]+$/;
const killWaitMs = 5_000;

/** Free, and gone with the next sweep should this process die. */
export function makeSandboxId(): SandboxId {
  const startTicks = readProcess(process.pid)?.startTicks ?? 0;
  const unique = Math.random().toString(36).slice(2, 10).padEnd(8, '0');
  return sandboxId.parse(`sb-${process.pid}-${startTicks.toString(36)}-${unique}`);
}

export async function makeSandboxFolder(runDir: string): Promise<{ id: SandboxId; folder: string }> {
  const id = makeSandboxId();
  const folder = join(runDir, id);
  await mkdir(folder, { mode: 0o700 });
  return { id, folder };
}

/** The first process inside: whoever kills it kills all of them. */
export async function recordProcess(folder: string, pid: number): Promise<void> {
  const startTicks = readProcess(pid)?.startTicks;
  if (startTicks !== undefined) await writeFile(join(folder, 'process'), `${pid} ${startTicks}`);
}

/** Answers how many sandboxes of dead owners there were. Any number of workers may sweep at once: each folder falls to one of them. */
export async function sweepOrphans(runDir: string): Promise<number> {
  let count = 0;
  for (const name of await readdir(runDir)) {
    const [, pid, start] = namePattern.exec(name) ?? [];
    if (pid === undefined || start === undefined || isAlive(Number(pid), Number.parseInt(start, 36))) continue;
    // Renaming makes it ours: should we die, it is an orphan again; who comes second finds nothing to rename.
    const mine = join(runDir, makeSandboxId());
    if (!(await rename(join(runDir, name), mine).then(() => true, isGone))) continue;
    await endProcess(mine);
    await killHolders(join(runDir, name));
    await killHolders(mine); // mounts follow the rename
    await removeRecordedGroups(mine);
    await removeTree(mine);
    count += 1;
  }
  return count;
}

function isAlive(pid: number, startTicks: number): boolean {
  return readProcess(pid)?.startTicks === startTicks;
}

function isGone(error: NodeJS.ErrnoException): boolean {
  if (error.code !== 'ENOENT') throw error;
  return false;
}

async function endProcess(folder: string): Promise<void> {
  const text = await readFile(join(folder, 'process'), 'utf8').catch(() => ''); // its owner died before there was one
  const [pid = 0, startTicks = 0] = text.split(' ').map(Number);
  if (pid <= 0 || !isAlive(pid, startTicks)) return;
  sendSignal(pid, 'SIGKILL');
  for (let waitedMs = 0; isAlive(pid, startTicks) && waitedMs < killWaitMs; waitedMs += 10) await sleep(10); // not our child: it has no event
}

/**
 * Whoever was started with the sandbox's folder in its arguments or has it mounted, whatever part of starting it was at when its
 * owner died. A holder that dies early leaves a child that waits for its word for ever, or servers of file systems.
 */
export async function killHolders(folder: string): Promise<void> {
  const read = (pid: string, file: string) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => ''); // gone meanwhile
  const inMounts = `/${basename(folder)}/`;
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const isArgument = (await read(pid, 'cmdline')).split('\0').some((argument) => argument.startsWith(`${folder}/`));
    if (isArgument || (await read(pid, 'mountinfo')).includes(inMounts)) sendSignal(Number(pid), 'SIGKILL');
  }
}

/** Follows no link. Trees that their maker has closed or made too deep for a path fall to rm, which walks them. */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true });
  } catch {
    await runProgram(['chmod', '-R', 'u+rwX', '--', path]).catch(() => {}); // what matters is whether rm can
    await runProgram(['rm', '-rf', '--', path]);
  }
}
