// The holder of a sandbox: the process that the worker starts, watches and ends. Killing the first process inside ends all the others, and
// the holder ends only when none of them is left.

import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import type { Stream } from 'node:stream';
import { systemClock } from '@millrace/base/clock';
import { sendSignal } from '@millrace/base/processes';
import { z } from 'zod';
import { killHolders } from '../run-folder/run-folder.ts';

export interface SandboxProcess {
  /** The pid, on this machine, of the first process inside; undefined if the holder ended before it started one. */
  readonly inside: Promise<number | undefined>;
  /** How the holder ended, with the end of its standard error. Never rejects. */
  readonly ended: Promise<string>;
  /** Idempotent. Resolves when every process inside is dead. */
  kill(): Promise<void>;
}

/** Lower than a worker's priority: agents, or many sandboxes that start at once, must not delay a worker. */
const niceness = 10;
const keptErrorBytes = 4096;
const killGraceMs = 2_000;
const pidReport = z.object({ 'child-pid': z.int().min(2) });

export interface HolderProgram {
  /** The program and its arguments. */
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Whether it writes its child's pid as JSON to file descriptor 3, as bwrap's --info-fd does. Otherwise the pid is looked up in /proc. */
  readonly reportsPid: boolean;
  /** The filter of system calls, for a program that reads it from a file descriptor. */
  readonly filter?: string;
  /** The user that it becomes, if not that of the worker. */
  readonly uid?: number;
}

interface HolderContext {
  /** The sandbox's folder: any process that has it in its arguments or mounts belongs to the sandbox. */
  readonly folder: string;
  /** Settles when the executor has connected: from then on, the first process inside can be looked up. */
  readonly connected: Promise<unknown>;
}

export function startSandboxProcess(holder: HolderProgram, { folder, connected }: HolderContext): SandboxProcess {
  const [file = '', ...args] = holder.command;
  // In its own session: a Ctrl-C in the worker's terminal must not reach the sandbox. It still dies with its worker.
  const child = spawn(file, args, { env: { ...holder.env }, detached: true, stdio: ['ignore', 'ignore', 'pipe', 'pipe'] });
  if (child.pid !== undefined) setPriority(child.pid, niceness);
  const stderr = keepTail(child.stderr);
  const reported = readReportedPid(child.stdio[3]);
  let over = false;
  const ended = new Promise<string>((resolve) => {
    const end = (how: string) => {
      over = true;
      resolve([how, stderr().trim()].filter(Boolean).join(': '));
    };
    child.once('error', (error) => end(error.message));
    child.once('close', (code, signal) => end(signal ? `ended by ${signal}` : `exit ${code}`));
  });
  const found = connected.then(() => findInside(child.pid));
  const inside = holder.reportsPid ? reported : Promise.race([found, ended.then(() => undefined)]);
  function forceKill(): void {
    child.kill('SIGKILL');
    killHolders(folder);
  }
  return {
    inside,
    ended,
    async kill() {
      if (over) return;
      const cancel = systemClock.after(killGraceMs, forceKill);
      // Kill the first process inside, not the holder: without the holder, a first process that still waits for it would wait forever,
      // and the holder's helpers would stay. This way, the end of the holder shows that all of them are dead.
      const pid = await inside;
      if (pid !== undefined && !over) sendSignal(pid, 'SIGKILL');
      await ended;
      cancel();
    },
  };
}

function readReportedPid(stream: Stream | null | undefined): Promise<number | undefined> {
  const report = keepTail(stream);
  return new Promise((resolve) => stream?.once('close', () => resolve(parsePid(report()))));
}

/** The holder's child that is process 1 of its own namespace. Reads synchronously: these files are in memory, and a rollout waits. */
function findInside(holder: number | undefined): number | undefined {
  const folder = `/proc/${holder}/task`;
  const tasks = existsSync(folder) ? readdirSync(folder) : [];
  const children = tasks.flatMap((task) =>
    readOrNothing(join(folder, task, 'children'))
      .split(' ')
      .filter(Boolean),
  );
  return children.map(Number).find((pid) => /^NSpid:.*\t1$/m.test(readOrNothing(`/proc/${pid}/status`)));
}

function readOrNothing(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // the process has ended
  }
}

function parsePid(text: string): number | undefined {
  try {
    return pidReport.parse(JSON.parse(text))['child-pid'];
  } catch {
    return undefined; // the holder ended before it reported a pid
  }
}

function keepTail(stream: Stream | null | undefined): () => string {
  let kept: Buffer = Buffer.alloc(0);
  stream?.on('data', (chunk: Buffer) => {
    kept = Buffer.concat([kept, chunk]).subarray(-keptErrorBytes);
  });
  stream?.on('error', () => {}); // the end of the process is its own event
  return () => kept.toString('utf8');
}
