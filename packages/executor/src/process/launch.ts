// How the agent's programs are started: under the limits that no control group enforces, and as the kernel's first choice when the
// sandbox runs out of memory, so that the executor survives.

import { closeSync, openSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import type { ProgramLimits } from '@millrace/protocol';

/**
 * The command itself, or a bash that sets its own limits and then becomes the command. It reads no start-up file: without
 * `--norc`, bash reads the agent's .bashrc if its standard input is a socket, as here.
 */
export function renderLaunch(command: readonly string[], { processes, memory_mib }: ProgramLimits): string[] {
  const limits = [
    ...(processes === undefined ? [] : [`ulimit -u ${processes}`]),
    ...(memory_mib === undefined ? [] : [`ulimit -v ${memory_mib * 1024}`]),
  ];
  return limits.length === 0 ? [...command] : ['/bin/bash', '--norc', '-p', '-c', `${limits.join('; ')}; exec "$@"`, 'bash', ...command];
}

type Stdio = 'ignore' | 'pipe' | number;

/**
 * Starts a program that inherits these files and no others. The executor's terminals have no close-on-exec flag, so /dev/null takes
 * their place: a program that inherited one could type into the shell of its sandbox and read its output.
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
    return false; // the descriptor that the folder was read with, already closed
  }
}

/** Its children inherit the score. The executor's own score is lower; the worker set it before the start. */
export function preferAsOomVictim(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, '1000');
  } catch {} // already ended, or an unreadable program: it keeps the executor's score
}

/** Whether the sandbox has run out of processes, open files, memory, disk or file size. */
export function isUsedUp(error: unknown): boolean {
  return /^(EAGAIN|EMFILE|ENFILE|ENOMEM|ENOSPC|EDQUOT|EFBIG)$/.test(String((error as NodeJS.ErrnoException).code));
}

/** Kills every process but this one in one call, so that none can escape by forking. */
export function killEverything(): void {
  try {
    process.kill(-1, 'SIGKILL');
  } catch {} // there was no other process
}
