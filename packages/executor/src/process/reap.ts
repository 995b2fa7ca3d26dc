// Reaps orphans. A process whose parent has ended becomes a child of process 1. When it ends too, it counts against the limit of processes
// until process 1 waits for it, and Node waits only for the children that it has started.

import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { CFunctions } from './c-functions.ts';

/** The children that Node or the PTY library waits for; if they were reaped here, their exit codes would be lost. */
export type OwnChildren = Set<number>;

/** Call it in the same tick as the start of the child. */
export function adopt(child: ChildProcess, own: OwnChildren): void {
  const { pid } = child;
  if (pid === undefined) return;
  own.add(pid);
  child.once('exit', () => own.delete(pid));
}

/** Many processes may end at the same time. */
const pauseMs = 20;

export function startReaper({ waitpid }: CFunctions, own: OwnChildren): void {
  let isPlanned = false;
  function reap(): void {
    isPlanned = false;
    for (const pid of listChildren()) if (!own.has(pid)) waitpid(pid);
  }
  process.on('SIGCHLD', () => {
    if (isPlanned) return;
    isPlanned = true;
    setTimeout(reap, pauseMs);
  });
}

/** Zombies are included. Orphans become children of the main thread. */
function listChildren(): number[] {
  const text = readFileSync(`/proc/self/task/${process.pid}/children`, 'latin1');
  return text.split(' ').filter(Boolean).map(Number);
}
