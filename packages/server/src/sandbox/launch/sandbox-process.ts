// The process that holds a sandbox: started, watched and ended here. Ending the first process inside ends all of them, and the
// process is over only when none of them is left.

import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import type { Stream } from 'node:stream';
import { sendSignal } from '@millrace/executor';
import { z } from 'zod';
import { systemClock } from '../../base/clock.ts';
import { killHolders } from '../run-folder/run-folder.ts';

export interface SandboxProcess {
  /** The first process inside, as this machine numbers it; absent when it ended before there was one. */
  readonly inside: Promise<number | undefined>;
  /** How it ended and what it last said on standard error; never rejects. */
  readonly ended: Promise<string>;
  /** Idempotent; resolves when everything inside is dead. */
  kill(): Promise<void>;
}

/** Workers come first: what agents do, and the start of many sandboxes, must not make a worker late. */
const niceness = 10;
const keptErrorBytes = 4096;
const killGraceMs = 2_000;
const infoReply = z.object({ 'child-pid': z.int().min(2) });

export interface HolderProgram {
  /** The program and its arguments. */
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** It writes its child's pid as JSON to file descriptor 3, as bwrap's --info-fd does; one that does not is searched for it. */
  readonly tellsInside: boolean;
}

export interface HolderContext {
  /** The sandbox's own: whoever has it among its arguments or mounts belongs to the sandbox. */
  readonly folder: string;
  /** Settles when the executor has connected: then the first process inside can be found. */
  readonly connected: Promise<unknown>;
}

export function startSandboxProcess(holder: HolderProgram, { folder, connected }: HolderContext): SandboxProcess {
  const [file = '', ...args] = holder.command;
  // In its own session: a Ctrl-C in the worker's terminal must not reach the sandbox. It still dies with its worker.
  const child = spawn(file, args, { env: { ...holder.env }, detached: true, stdio: ['ignore', 'ignore', 'pipe', 'pipe'] });
  if (child.pid !== undefined) setPriority(child.pid, niceness);
  const stderr = keepTail(child.stderr);
  const told = readTold(child.stdio[3]);
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
  const inside = holder.tellsInside ? told : Promise.race([found, ended.then(() => undefined)]);
  function giveUp(): void {
    child.kill('SIGKILL');
    killHolders(folder);
  }
  return {
    inside,
    ended,
    async kill() {
      if (over) return;
      const cancel = systemClock.after(killGraceMs, giveUp);
      // Not the holder: without it, a first process that waits for its word would wait for ever, and helpers that it started
      // would stay. And through the first process, the holder's end tells that all are dead.
      const pid = await inside;
      if (pid !== undefined && !over) sendSignal(pid, 'SIGKILL');
      await ended;
      cancel();
    },
  };
}

function readTold(stream: Stream | null | undefined): Promise<number | undefined> {
  const info = keepTail(stream);
  return new Promise((resolve) => stream?.once('close', () => resolve(parseChild(info()))));
}

/** The holder's child that is process 1 of a namespace of its own. Without waiting: these files are in memory, and a rollout waits. */
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
    return ''; // it has ended
  }
}

function parseChild(text: string): number | undefined {
  try {
    return infoReply.parse(JSON.parse(text))['child-pid'];
  } catch {
    return undefined; // it ended before it could say
  }
}

function keepTail(stream: Stream | null | undefined): () => string {
  let kept: Buffer = Buffer.alloc(0);
  stream?.on('data', (chunk: Buffer) => {
    kept = Buffer.concat([kept, chunk]).subarray(-keptErrorBytes);
  });
  stream?.on('error', () => {}); // the process has ended, and that is told by its own event
  return () => kept.toString('utf8');
}
