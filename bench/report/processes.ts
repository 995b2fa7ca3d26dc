// Reads the cost of other processes from /proc.

import { readdirSync, readFileSync } from 'node:fs';

/** CPU time so far, user and system, in milliseconds (in steps of 10). */
export function readCpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

interface SpentCpu {
  readonly ownMs: number;
  /** Of the processes that it started and waited for, with theirs. */
  readonly childrenMs: number;
  /** What both spent in the kernel. */
  readonly kernelMs: number;
}

/** CPU time so far (in steps of 10 ms). With its spawner, which starts sandboxes for it and waits for them. */
export function readWorkerCpu(pid: number): SpentCpu {
  const all = [pid, ...listChildren(pid).filter(isSpawner)].map(readSpentCpu);
  const sum = (field: keyof SpentCpu) => all.reduce((total, spent) => total + spent[field], 0);
  return { ownMs: sum('ownMs'), childrenMs: sum('childrenMs'), kernelMs: sum('kernelMs') };
}

function listChildren(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  );
}

function isSpawner(pid: number): boolean {
  try {
    return /\/executor[^/]*\0spawn\0/.test(readFileSync(`/proc/${pid}/cmdline`, 'latin1'));
  } catch {
    return false; // it has ended
  }
}

/** CPU time so far (in steps of 10 ms). */
export function readSpentCpu(pid: number): SpentCpu {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  const [user = 0, kernel = 0, childUser = 0, childKernel = 0] = fields.slice(11, 15).map((ticks) => Number(ticks) * 10);
  return { ownMs: user + kernel, childrenMs: childUser + childKernel, kernelMs: kernel + childKernel };
}

/** Private memory plus a proportional share of shared memory. */
export function readPssMiB(pid: number): number {
  const pss = /^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'));
  return Number(pss?.[1] ?? Number.NaN) / 1024;
}

/** Resident memory now, or at its peak. */
export function readMemoryMiB(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const found = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(found?.[1] ?? Number.NaN) / 1024;
}

/** The process that started it. */
export function readParent(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[1]);
}
