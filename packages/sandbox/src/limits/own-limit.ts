// Whether a sandbox itself used up what the kernel refused to it. Its own control groups are the evidence; a machine without processes,
// files, memory or disk refuses in the same words, and that is not the agent's doing.

import { readFileSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import type { CgroupBase } from './cgroups.ts';

interface OwnLimitOptions {
  /** Of the groups of the sandbox. */
  readonly name: string;
  /** On the machine's disk, which holds what the sandbox writes. */
  readonly folder: string;
}

/** A disk with less room than this is full. */
const leastFreeBytes = 1 << 20;

export function openOwnLimit(bases: readonly CgroupBase[], { name, folder }: OwnLimitOptions): (errno: string | undefined) => boolean {
  const groupOf = (wanted: CgroupBase['controller']) => {
    const base = bases.find(({ controller }) => controller === wanted);
    return base && join(base.folder, name);
  };
  const [pids, memory] = [groupOf('pids'), groupOf('memory')];
  return (errno) => {
    switch (errno) {
      case 'EAGAIN':
        return pids === undefined || hasReachedProcesses(pids);
      case 'ENOMEM':
        return memory === undefined || hasReachedMemory(memory);
      case 'ENOSPC':
      case 'EDQUOT':
        return hasRoom(folder);
      case 'ENFILE': // the table of all open files of the machine
        return false;
      default:
        return true;
    }
  };
}

/** Some kernels count a limit of a group above here too; the most processes that there ever were tell, where they are known. */
function hasReachedProcesses(group: string): boolean {
  const [peak, most] = [readNumber(group, 'pids.peak'), readNumber(group, 'pids.max')];
  if (peak !== undefined && most !== undefined) return peak >= most;
  return /^max [1-9]/m.test(readText(group, 'pids.events'));
}

function hasReachedMemory(group: string): boolean {
  return /^(?:max|oom) [1-9]/m.test(readText(group, 'memory.events')) || (readNumber(group, 'memory.failcnt') ?? 0) > 0;
}

function hasRoom(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize >= leastFreeBytes;
  } catch {
    return true; // the sandbox is being removed
  }
}

function readNumber(group: string, file: string): number | undefined {
  const text = readText(group, file).trim();
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

function readText(group: string, file: string): string {
  try {
    return readFileSync(join(group, file), 'latin1');
  } catch {
    return ''; // this kernel does not have it
  }
}
