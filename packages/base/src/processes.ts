// Processes as /proc shows them. A zombie counts as gone: it runs nothing and only waits for its parent.

import { readdirSync, readFileSync } from 'node:fs';

interface ProcessStat {
  readonly pid: number;
  /** The letter that /proc uses: R for running, S for sleeping, T for stopped. */
  readonly state: string;
  readonly group: number;
  readonly session: number;
  /** The process group in the foreground of its terminal. */
  readonly foreground: number;
  /** In clock ticks since boot. Together with the pid it identifies a process, even after the pid is reused. */
  readonly startTicks: number;
}

export function readProcess(pid: number): ProcessStat | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return undefined; // gone
  }
  // The second field is the program's name in parentheses. The name itself may contain spaces and parentheses.
  const [state = '', _parent, group, session, _terminal, foreground, ...rest] = text.slice(text.lastIndexOf(')') + 2).split(' ');
  if (state === 'Z' || state === 'X') return undefined;
  return { pid, state, group: Number(group), session: Number(session), foreground: Number(foreground), startTicks: Number(rest[13]) };
}

/** Of all its threads that are alive: how long they ran, and how long they were ready to run without a core. */
export function readCoreTime(pid: number): { readonly ranMs: number; readonly waitedMs: number } {
  const sum = { ranMs: 0, waitedMs: 0 };
  try {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      const [ran = 0, waited = 0] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ').map(Number);
      sum.ranMs += ran / 1e6;
      sum.waitedMs += waited / 1e6;
    }
  } catch {} // it, or one of its threads, has ended
  return sum;
}

/** A negative pid names a process group. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {} // already gone: that is what we wanted
}
