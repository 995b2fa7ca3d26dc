// Lets calm sandboxes go first. Looks at the CPU time of all sandboxes once a second, and has the kernel schedule one that uses more than
// half a core as idle: it gets what the others leave, and a neighbour's call does not wait until its time slices end.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, systemClock } from '../../base/clock.ts';
import type { CgroupBase } from './cgroups.ts';

export interface BusyWatch {
  /** Watches the groups with this name until the returned function is called. */
  add(name: string): () => void;
}

const intervalMs = 1000;
/** In cores. Below the second one it goes back to its usual share: no sandbox starves because it was busy once. */
const [busyAbove, calmBelow] = [0.5, 0.25];

interface Watched {
  readonly usageFile: string;
  readonly idleFile: string;
  usedMs: number;
  isIdle: boolean;
}

/** Runs only while something is watched. Without the control groups that it needs, it does nothing. */
export function openBusyWatch(bases: readonly CgroupBase[], clock: Clock = systemClock): BusyWatch {
  const cpu = bases.find(({ controller }) => controller === 'cpu');
  const usage = cpu?.version === 2 ? cpu : bases.find(({ controller }) => controller === 'cpuacct');
  if (!cpu || !usage) return { add: () => () => {} };
  const usageName = usage.version === 2 ? 'cpu.stat' : 'cpuacct.usage';
  const watched = new Set<Watched>();
  let lookedAt = clock.monotonic();
  let isScheduled = false;
  function look(): void {
    isScheduled = false;
    const elapsedMs = clock.monotonic() - lookedAt;
    lookedAt = clock.monotonic();
    for (const one of watched) judge(one, elapsedMs);
    schedule();
  }
  function schedule(): void {
    if (isScheduled || watched.size === 0) return;
    isScheduled = true;
    clock.after(intervalMs, look);
  }
  return {
    add(name) {
      const one = {
        usageFile: join(usage.folder, name, usageName),
        idleFile: join(cpu.folder, name, 'cpu.idle'),
        usedMs: 0,
        isIdle: false,
      };
      one.usedMs = readUsedMs(one) ?? 0;
      if (watched.size === 0) lookedAt = clock.monotonic();
      watched.add(one);
      schedule();
      return () => watched.delete(one);
    },
  };
}

function judge(one: Watched, elapsedMs: number): void {
  const usedMs = readUsedMs(one);
  if (usedMs === undefined) return;
  const cores = (usedMs - one.usedMs) / Math.max(elapsedMs, 1);
  one.usedMs = usedMs;
  const shouldIdle = one.isIdle ? cores >= calmBelow : cores > busyAbove;
  if (shouldIdle === one.isIdle) return;
  try {
    writeFileSync(one.idleFile, shouldIdle ? '1' : '0', { flag: 'r+' });
    one.isIdle = shouldIdle;
  } catch {} // the sandbox has ended, or the kernel is older than 5.15 and cannot
}

/** Reads at once: a group's file is never on a disk, and hundreds of reads through the thread pool cost ten times as much. */
function readUsedMs({ usageFile }: Watched): number | undefined {
  try {
    const text = readFileSync(usageFile, 'latin1');
    const microseconds = /^usage_usec (\d+)/m.exec(text)?.[1];
    return microseconds === undefined ? Number(text) / 1e6 : Number(microseconds) / 1e3;
  } catch {
    return undefined; // the sandbox has ended
  }
}
