// Stops a command or a cell that ran out of time or was cancelled, in steps of growing force. Each step is taken only if the one before
// did not end the command in time. For a command: Ctrl-C, SIGKILL to the foreground group, SIGKILL to the whole session.

import { killSession, listProcesses, readProcess, sendSignal } from '../process/processes.ts';
import { startTimer } from '../process/timer.ts';
import type { Bash, CommandEnd } from './bash.ts';

const graceMs = 400;
/** A program that reads the terminal must be dead before we type anything, or it reads what we type. */
const dyingMs = 30;

export interface Stopper {
  /** Why the command is being stopped; undefined if it is not. */
  reason(): 'timeout' | 'cancelled' | undefined;
  close(): void;
}

export type StopStep = readonly [act: () => void, waitMs: number];

export function stepsForBash(bash: Bash): StopStep[] {
  return [
    [() => interrupt(bash), dyingMs],
    [() => bash.repeatMarker(), graceMs],
    [() => killForeground(bash), dyingMs],
    [() => bash.repeatMarker(), graceMs],
    [() => killSession(bash.pid), graceMs],
  ];
}

/** Used after a command was stopped: an interrupt that came too late for it may still discard the next line. */
export async function settleBash(bash: Bash): Promise<CommandEnd> {
  const never = new AbortController().signal;
  const steps: StopStep[] = [
    [() => bash.repeatMarker(), graceMs],
    [() => killSession(bash.pid), graceMs],
  ];
  const stopper = openStopper(steps, { timeoutMs: dyingMs, signal: never });
  return bash.settle().finally(stopper.close);
}

export function openStopper(steps: StopStep[], options: { readonly timeoutMs: number; readonly signal: AbortSignal }): Stopper {
  let reason: 'timeout' | 'cancelled' | undefined;
  let timer = startTimer(options.timeoutMs, () => stop('timeout'));

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

/** Sends a signal instead of typing ^C: the command may have put the terminal into raw mode. */
function interrupt(bash: Bash): void {
  const stat = readProcess(bash.pid);
  if (stat) sendSignal(-stat.foreground, 'SIGINT');
}

/** The foreground group may be the shell's own (a command substitution), so the shell itself is left alone. */
function killForeground(bash: Bash): void {
  const foreground = readProcess(bash.pid)?.foreground;
  for (const { pid, group } of listProcesses()) if (group === foreground && pid !== bash.pid) sendSignal(pid, 'SIGKILL');
}
