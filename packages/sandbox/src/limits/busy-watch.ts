// Lets calm sandboxes go first. Looks at the CPU time of all sandboxes once a second, and has the kernel schedule one that uses more than
// half a core as idle: it gets what the others leave, and a neighbour's call does not wait until its time slices end. On a full machine the
// others leave nothing. So it looks at the idle ones ten times a second, and gives those that starve, or need no more, their usual share back.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, systemClock } from '@millrace/base/clock';
import type { CgroupBase } from './cgroups.ts';
import { readUsageMs } from './use.ts';

interface BusyWatch {
  /** Watches the groups with this name until the returned function is called. */
  add(name: string): () => void;
}

const [intervalMs, idleIntervalMs] = [1000, 100];
/** In cores. Below the second one it goes back to its usual share: no sandbox starves because it was busy once. */
const [busyAbove, calmBelow] = [0.5, 0.25];

interface Watched {
  readonly usageFile: string;
  readonly idleFile: string;
  usedMs: number;
  lookedAt: number;
  isIdle: boolean;
}

/** Runs only while something is watched. Without the control groups that it needs, it does nothing. */
export function openBusyWatch(bases: readonly CgroupBase[], clock: Clock = systemClock): BusyWatch {
  const cpu = bases.find(({ controller }) => controller === 'cpu');
  const usage = cpu?.version === 2 ? cpu : bases.find(({ controller }) => controller === 'cpuacct');
  if (!cpu || !usage) return { add: () => () => {} };
  const usageName = usage.version === 2 ? 'cpu.stat' : 'cpuacct.usage';
  const watched = new Set<Watched>();
  const idle = new Set<Watched>();
  const watchAll = openRounds(clock, intervalMs, watched, look);
  const watchIdle = openRounds(clock, idleIntervalMs, idle, look);
  function look(one: Watched): void {
    judge(one, clock.monotonic());
    if (one.isIdle) idle.add(one);
    else idle.delete(one);
    watchIdle();
  }
  return {
    add(name) {
      const one = {
        usageFile: join(usage.folder, name, usageName),
        idleFile: join(cpu.folder, name, 'cpu.idle'),
        usedMs: 0,
        lookedAt: clock.monotonic(),
        isIdle: false,
      };
      one.usedMs = readUsageMs(one.usageFile) ?? 0;
      watched.add(one);
      watchAll();
      return () => {
        watched.delete(one);
        idle.delete(one);
      };
    },
  };
}

/** Returns what starts the rounds over `all`; they stop when it is empty. */
function openRounds(clock: Clock, everyMs: number, all: ReadonlySet<Watched>, look: (one: Watched) => void): () => void {
  let isScheduled = false;
  function schedule(): void {
    if (isScheduled || all.size === 0) return;
    isScheduled = true;
    clock.after(everyMs, () => {
      isScheduled = false;
      for (const one of all) look(one);
      schedule();
    });
  }
  return schedule;
}

function judge(one: Watched, now: number): void {
  const elapsedMs = now - one.lookedAt;
  if (elapsedMs < (one.isIdle ? idleIntervalMs : intervalMs) / 2) return; // too short: it may only have started a program
  const usedMs = readUsageMs(one.usageFile);
  if (usedMs === undefined) return;
  const cores = (usedMs - one.usedMs) / elapsedMs;
  one.usedMs = usedMs;
  one.lookedAt = now;
  const shouldIdle = one.isIdle ? cores >= calmBelow : cores > busyAbove;
  if (shouldIdle === one.isIdle) return;
  try {
    writeFileSync(one.idleFile, shouldIdle ? '1' : '0', { flag: 'r+' });
    one.isIdle = shouldIdle;
  } catch {} // the sandbox has ended, or the kernel is older than 5.15 and cannot
}
