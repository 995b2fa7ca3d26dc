// Stopping a command or a cell whose time is over or that nobody wants, in steps that grow harder, each only if the one before it
// brought no end within its grace. For a command: Ctrl-C, SIGKILL for what is in the foreground, SIGKILL for the shell's session.

import { listProcesses, readProcess, sendSignal } from '../process/processes.ts';
import type { Bash, CommandEnd } from './bash.ts';

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

export type StopStep = readonly [act: () => void, waitMs: number];

export function stepsForBash(bash: Bash): StopStep[] {
  return [
    [() => interrupt(bash), dyingMs],
    [() => bash.askAgain(), graceMs],
    [() => killForeground(bash), dyingMs],
    [() => bash.askAgain(), graceMs],
    [() => killSession(bash.pid), graceMs],
  ];
}

/** For a shell whose last command was stopped: an interrupt that came too late for it may still throw away a line. */
export async function settleBash(bash: Bash): Promise<CommandEnd> {
  const never = new AbortController().signal;
  const steps: StopStep[] = [
    [() => bash.askAgain(), graceMs],
    [() => killSession(bash.pid), graceMs],
  ];
  const stopper = openStopper(steps, { timeoutMs: dyingMs, signal: never });
  return bash.settle().finally(stopper.close);
}

export function openStopper(steps: StopStep[], options: { readonly timeoutMs: number; readonly signal: AbortSignal }): Stopper {
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
export function killSession(leader: number): void {
  sendSignal(leader, 'SIGKILL');
  for (let pass = 0; pass < passes; pass += 1) {
    const members = listProcesses().filter(({ session }) => session === leader);
    if (members.length === 0) return;
    for (const { pid } of members) sendSignal(pid, 'SIGKILL');
  }
}
