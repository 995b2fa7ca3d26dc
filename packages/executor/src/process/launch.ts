// How the agent's programs are started: within the limits that no control group keeps, and as the first to go when the sandbox's
// memory is used up, so that the executor is not.

import { closeSync, openSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs';

/** As the worker says in limits.json; what is absent is kept by control groups. */
export interface ProgramLimits {
  readonly processes?: number;
  readonly memoryMiB?: number;
}

/** The command as it is, or through a bash that limits itself and then becomes it. */
export function renderLaunch(command: readonly string[], { processes, memoryMiB }: ProgramLimits): string[] {
  const limits = [
    ...(processes === undefined ? [] : [`ulimit -u ${processes}`]),
    ...(memoryMiB === undefined ? [] : [`ulimit -v ${memoryMiB * 1024}`]),
  ];
  return limits.length === 0 ? [...command] : ['/bin/bash', '-c', `${limits.join('; ')}; exec "$@"`, 'bash', ...command];
}

type Stdio = 'ignore' | 'pipe' | number;

/**
 * Starts a program with these files and no other. The terminals that the executor holds are not closed by themselves in what it
 * starts, so /dev/null is put in their places: whoever had one could write into the shell of its sandbox, and read what it says.
 */
export function withoutTerminals<T>(stdio: readonly Stdio[], start: (stdio: Stdio[]) => T): T {
  const terminals = readdirSync('/proc/self/fd').map(Number).filter(isTerminal);
  const nothing = openSync('/dev/null', 'r');
  try {
    const count = Math.max(stdio.length, ...terminals.map((fd) => fd + 1));
    return start(Array.from({ length: count }, (_, fd) => stdio[fd] ?? (terminals.includes(fd) ? nothing : 'ignore')));
  } finally {
    closeSync(nothing);
  }
}

function isTerminal(fd: number): boolean {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`).endsWith('/ptmx');
  } catch {
    return false; // the one that the folder was read with
  }
}

/** Its children inherit it. The executor's own score is lower, and was set before it started. */
export function offerToKernel(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, '1000');
  } catch {} // ended already, or a program that may not be read: then it is no worse than the executor
}

/** The sandbox has no process, open file, memory or disk left to give. */
export function isUsedUp(error: unknown): boolean {
  return /^(EAGAIN|EMFILE|ENFILE|ENOMEM|ENOSPC|EDQUOT)$/.test(String((error as NodeJS.ErrnoException).code));
}

/** All but this one, in one go: nothing can fork away from it. */
export function killEverything(): void {
  try {
    process.kill(-1, 'SIGKILL');
  } catch {} // there was nothing else
}
