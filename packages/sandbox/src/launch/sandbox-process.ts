// The holder of a sandbox: the process that the worker starts, watches and ends. Killing the first process inside ends all the others, and
// the holder ends only when none of them is left.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '@millrace/base/clock';
import { sendSignal } from '@millrace/base/processes';
import { z } from 'zod';
import { killHolders } from '../run-folder/run-folder.ts';
import type { Spawner } from './spawner.ts';

export interface SandboxProcess {
  /** The pid, on this machine, of the first process inside; undefined if the holder ended before it started one. */
  readonly inside: Promise<number | undefined>;
  /** How the holder ended, with the end of its standard error. Never rejects. */
  readonly ended: Promise<string>;
  /** Idempotent. Resolves when every process inside is dead. */
  kill(): Promise<void>;
}

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

export function startSandboxProcess(spawner: Spawner, holder: HolderProgram, { folder, connected }: HolderContext): SandboxProcess {
  const { command, env = {}, reportsPid } = holder;
  let over = false;
  let known: number | undefined;
  const onOrphaned = async () => {
    if (known !== undefined) sendSignal(known, 'SIGKILL');
    await killHolders(folder);
  };
  const spawned = spawner.start(command, { env, reportsPid, onOrphaned });
  const ended = spawned.ended.finally(() => {
    over = true;
  });
  const readReport = async () => {
    const text = await spawned.report;
    return text === undefined ? undefined : parsePid(text);
  };
  const find = async () => {
    await connected;
    return findInside(await spawned.pid);
  };
  const inside = reportsPid ? readReport() : Promise.race([find(), ended.then(() => undefined)]);
  inside.then((pid) => {
    known = pid;
  });
  function forceKill(): void {
    spawned.kill();
    void killHolders(folder);
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
