// What a data folder says about the PostgreSQL that runs on it: the file postmaster.pid.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

interface Postmaster {
  readonly pid: number;
  /** It accepts connections. */
  readonly isReady: boolean;
}

const statusLine = 7;

/** Absent where none runs, or none has come far enough to say so. */
export async function readPostmaster(data: string): Promise<Postmaster | undefined> {
  const text = await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => '');
  const lines = text.split('\n');
  const pid = Number(lines[0]);
  return Number.isInteger(pid) && pid > 0 ? { pid, isReady: lines[statusLine]?.trim() === 'ready' } : undefined;
}

/** Whether that process is a PostgreSQL of this folder; its number may belong to another process by now. */
export async function isProcessAlive(pid: number, data: string): Promise<boolean> {
  const [command, stat] = await Promise.all(['cmdline', 'stat'].map((name) => readFile(`/proc/${pid}/${name}`, 'utf8').catch(() => '')));
  const state = stat?.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3);
  return command?.split('\0').includes(data) === true && state !== 'Z';
}
