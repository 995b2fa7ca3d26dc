// Limits the memory of whole sandboxes where no control group does: looks at all processes once a second, and kills the largest process of
// a sandbox whose processes use more than its limit together. Buffers of sockets and pipes belong to no process and are not seen.

import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { type Clock, systemClock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import { Pace, type Steps } from '@millrace/base/pace';
import { sendSignal } from '@millrace/base/processes';
import { messageOf } from '@millrace/protocol';

interface MemoryWatch {
  /** Watches the descendants of a sandbox's first process until the returned function is called. */
  add(first: number, limitMiB: number): () => void;
}

const intervalMs = 1_000;

interface MemoryWatchOptions {
  readonly log: Log;
  readonly clock?: Clock;
  /** Where the processes are listed. */
  readonly proc?: string;
}

/** Runs only while something is watched. A look that fails is repeated a second later. */
export function openMemoryWatch({ log, clock = systemClock, proc = '/proc' }: MemoryWatchOptions): MemoryWatch {
  const watched = new Map<number, number>();
  const pace = new Pace(clock);
  let isRunning = false;
  let hasFailed = false;
  async function look(): Promise<void> {
    try {
      const names = (await readdir(proc)).filter((name) => /^\d+$/.test(name));
      const children = await pace.run(readChildren(proc, names));
      for (const [first, limitKiB] of watched) await enforce(listDescendants(first, children), limitKiB);
      hasFailed = false;
    } catch (error) {
      if (!hasFailed) log.error('memory-watch-failed', { sandboxes: watched.size, error: messageOf(error) });
      hasFailed = true;
    } finally {
      isRunning = false;
      schedule();
    }
  }
  function schedule(): void {
    if (isRunning || watched.size === 0) return;
    isRunning = true;
    clock.after(intervalMs, () => void look());
  }
  return {
    add(first, limitMiB) {
      watched.set(first, limitMiB * 1024);
      schedule();
      return () => watched.delete(first);
    },
  };
}

interface ProcessMemory {
  readonly pid: number;
  readonly parent: number;
  /** Memory that it shares with other processes counts in each of them. */
  readonly kib: number;
}

/** About a millisecond. */
const readsPerStep = 32;

/** The kernel answers from memory: reading here takes a third of the CPU time of passing each read to another thread. */
function* readChildren(proc: string, names: readonly string[]): Steps<Map<number, ProcessMemory[]>> {
  const children = new Map<number, ProcessMemory[]>();
  for (const [index, name] of names.entries()) {
    if (index % readsPerStep === readsPerStep - 1) yield;
    const status = readStatus(`${proc}/${name}/status`);
    const read = (field: RegExp) => Number(field.exec(status)?.[1] ?? 0);
    const found = { pid: Number(name), parent: read(/^PPid:\s+(\d+)/m), kib: read(/^RssAnon:\s+(\d+)/m) + read(/^RssShmem:\s+(\d+)/m) };
    const siblings = children.get(found.parent);
    if (siblings) siblings.push(found);
    else children.set(found.parent, [found]);
  }
  return children;
}

function readStatus(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return ''; // it has ended
  }
}

function listDescendants(pid: number, children: ReadonlyMap<number, readonly ProcessMemory[]>): ProcessMemory[] {
  const found = [...(children.get(pid) ?? [])];
  for (let index = 0; index < found.length; index += 1) found.push(...(children.get(found[index]?.pid ?? 0) ?? []));
  return found;
}

/** Counts exactly, which takes longer, only if the quick sum is over the limit. */
async function enforce(processes: readonly ProcessMemory[], limitKiB: number): Promise<void> {
  if (sum(processes) <= limitKiB) return;
  const exact = await Promise.all(processes.map(async (one) => ({ ...one, kib: (await readShare(one.pid)) ?? one.kib })));
  if (sum(exact) <= limitKiB) return;
  const [largest] = exact.sort((a, b) => b.kib - a.kib);
  if (largest) sendSignal(largest.pid, 'SIGKILL');
}

function sum(processes: readonly ProcessMemory[]): number {
  return processes.reduce((total, { kib }) => total + kib, 0);
}

/** Its part of the memory that it shares, and all of the rest; without files. */
async function readShare(pid: number): Promise<number | undefined> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'latin1').catch(() => ''); // it has ended
  const [anonymous, shared] = ['Pss_Anon', 'Pss_Shmem'].map((field) => new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(text)?.[1]);
  return anonymous === undefined || shared === undefined ? undefined : Number(anonymous) + Number(shared);
}
