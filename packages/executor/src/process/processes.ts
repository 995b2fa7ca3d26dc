// Processes as /proc shows them. A zombie counts as gone: it runs nothing, it only waits for its parent.

import { readdirSync, readFileSync } from 'node:fs';

export interface ProcessStat {
  readonly pid: number;
  readonly group: number;
  readonly session: number;
  /** The process group in the foreground of its terminal. */
  readonly foreground: number;
  /** In clock ticks since the machine's boot: with the pid, it names a process for ever. */
  readonly startTicks: number;
}

export function readProcess(pid: number): ProcessStat | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return undefined; // gone
  }
  // The second field is the program's name in parentheses, and the name may hold spaces and parentheses itself.
  const [state, _parent, group, session, _terminal, foreground, ...rest] = text.slice(text.lastIndexOf(')') + 2).split(' ');
  if (state === 'Z' || state === 'X') return undefined;
  return { pid, group: Number(group), session: Number(session), foreground: Number(foreground), startTicks: Number(rest[13]) };
}

export function listProcesses(): ProcessStat[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readProcess(Number(name)) ?? []);
}

/** A pid below zero names a process group. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {} // already gone: that is what we wanted
}
