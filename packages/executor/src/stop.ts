// Stopping a command whose time is over or that nobody wants: Ctrl-C, then SIGKILL for what is in the foreground, then SIGKILL for
// the shell and its session, each step only if the one before it brought no end within the grace.

import type { Bash } from './bash.ts';
import { listProcesses, readProcess, sendSignal } from './processes.ts';

const graceMs = 400;
/** A program that reads the terminal must be dead before anything is typed, or it may read that. */
const dyingMs = 30;
const longestTimerMs = 2 ** 31 - 1;
const passes = 10;

export interface Stopper {
  /** Why the command is being stopped; absent while it is not. */
  reason(): 'timeout' | 'cancelled' | undefined;
  close(): void;
}

export function openStopper(bash: Bash, options: { readonly timeoutMs: number; readonly signal: AbortSignal }): Stopper {
  const steps: [act: () => void, waitMs: number][] = [
    [() => interrupt(bash), dyingMs],
    [() => bash.askAgain(), graceMs],
    [() => killForeground(bash), dyingMs],
    [() => bash.askAgain(), graceMs],
    [() => killSession(bash), graceMs],
  ];
  let reason: 'timeout' | 'cancelled' | undefined;
  let timer = setTimeout(() => stop('timeout'), Math.min(options.timeoutMs, longestTimerMs));

  function stop(why: 'timeout' | 'cancelled'): void {
    if (reason) return;
    reason = why;
    takeStep();
  }
  function takeStep(): void {
    clearTimeout(timer);
    const [act, waitMs] = steps.shift() ?? [];
    act?.();
    if (waitMs !== undefined) timer = setTimeout(takeStep, waitMs);
  }
  const onAbort = () => stop('cancelled');
  options.signal.addEventListener('abort', onAbort, { once: true });
  return {
    reason: () => reason,
    close() {
      clearTimeout(timer);
      options.signal.removeEventListener('abort', onAbort);
    },
  };
}

/** By signal, not by typing ^C: the command may have put the terminal into raw mode. */
function interrupt(bash: Bash): void {
  const stat = readProcess(bash.pid);
  if (stat) sendSignal(-stat.foreground, 'SIGINT');
}

/** The foreground group may be the shell's own (a command substitution): the shell is spared. */
function killForeground(bash: Bash): void {
  const foreground = readProcess(bash.pid)?.foreground;
  for (const { pid, group } of listProcesses()) if (group === foreground && pid !== bash.pid) sendSignal(pid, 'SIGKILL');
}

/** Again until none is left: a process may fork while the list is read. */
function killSession(bash: Bash): void {
  sendSignal(bash.pid, 'SIGKILL');
  for (let pass = 0; pass < passes; pass += 1) {
    const members = listProcesses().filter(({ session }) => session === bash.pid);
    if (members.length === 0) return;
    for (const { pid } of members) sendSignal(pid, 'SIGKILL');
  }
}
