// What a holder gets before it runs: its cgroups, the limits that need none (open files, core files, and its place in the order in which
// the kernel kills processes when memory runs out), the filter of its system calls, its mount namespace and user, and no file descriptor that
// it does not need. The executor's program does all of it in one step (`native/enter`), and then becomes the holder.

import type { SandboxLimits } from '../config.ts';

/** Where bwrap reads the filter of system calls. */
export const filterDescriptor = 4;

/** What the executor needs to pack a folder of 64 MiB, the largest reply. */
const leastDataMiB = 256;

export interface HolderEntry {
  readonly command: readonly string[];
  /** Whether the command keeps file descriptor 3. It always keeps 0, 1 and 2. */
  readonly reportsPid: boolean;
  /** A file that the command reads from `filterDescriptor`. */
  readonly filter?: string;
  /** The user that it becomes, if not that of the worker. */
  readonly uid?: number;
  /** What is made before, as steps of `native/enter`. */
  readonly steps?: readonly string[];
}

interface HolderLimits {
  /** The executor's program. */
  readonly program: string;
  /** Make its groups and enter them. */
  readonly groups: readonly string[];
  readonly limits: SandboxLimits;
  /** Without a group for memory, each process gets a limit of its own memory, which no program can raise. */
  readonly isMemoryBounded: boolean;
}

/** The limits hold before the first instruction of the driver's program, and a group that cannot be entered ends it. */
export function renderEntry({ program, groups, limits, isMemoryBounded }: HolderLimits, holder: HolderEntry, mounts?: string): string[] {
  const { command, reportsPid, filter, uid, steps = [] } = holder;
  const dataBytes = Math.max(limits.memoryMiB, leastDataMiB) * 2 ** 20;
  return [
    ...[program, 'enter', ...steps, ...groups],
    ...(mounts === undefined ? [] : ['mounts', mounts]),
    ...['files', String(limits.openFiles), ...(isMemoryBounded ? [] : ['data', String(dataBytes)])],
    ...[...(filter === undefined ? [] : ['filter', filter]), ...(reportsPid ? ['keep', '3'] : [])],
    ...(uid === undefined ? [] : ['user', String(uid)]),
    ...['--', ...command],
  ];
}
