// The command lines of this machine's processes, for tests about processes that are not their children: those have no event to wait for.

import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';

export interface CommandLine {
  readonly pid: number;
  /** The arguments, separated by zero bytes; empty for a process that has just ended. */
  readonly text: string;
}

export async function readCommandLines(): Promise<CommandLine[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const read = (pid: number) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''); // it has ended
  return Promise.all(pids.map(async (pid) => ({ pid, text: await read(pid) })));
}

/** Throws if a process with such a command line still runs after two seconds. */
export async function waitUntilNoneRuns(isSuch: (text: string) => boolean): Promise<void> {
  for (let tries = 0; ; tries += 1) {
    const left = (await readCommandLines()).find(({ text }) => isSuch(text));
    if (!left) return;
    if (tries === 200) throw new Error(`process ${left.pid} still runs: ${left.text.replaceAll('\0', ' ')}`);
    await pause(10);
  }
}
