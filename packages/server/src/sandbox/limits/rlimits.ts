// What a holder gets before it runs: its cgroups, the limits that need none (open files, core files, and its place in the order in which
// the kernel kills processes when memory runs out), the filter of its system calls, and no file descriptor that it does not need.

import { readFileSync } from 'node:fs';
import type { SandboxLimits } from '../config.ts';

/** Where bwrap reads the filter of system calls. */
export const filterDescriptor = 4;

/** What the executor needs to pack a folder of 64 MiB, the largest reply. */
const leastDataMiB = 256;

/** When the machine runs out of memory, the kernel kills a sandbox before a worker. */
const oomScore = 500;

/**
 * Reads cgroup folders up to `--`, enters each, sets the limits, and becomes the rest. The limits hold before the first instruction of the
 * driver's program, and a group that cannot be entered ends it. In version 1, writing 0 to `tasks` moves one thread, which is all that a
 * shell has, and does so at once; moving a whole process makes the kernel wait 5 to 15 ms until no process on the machine forks.
 */
const entry = `while [ "$1" != -- ]; do
  if [ -e "$1/tasks" ]; then echo 0 > "$1/tasks"; else echo $$ > "$1/cgroup.procs"; fi || exit 1; shift
done; shift
echo ${oomScore} > /proc/self/oom_score_adj; ulimit -c 0; ulimit -n "$1" || exit 1
[ -z "$2" ] || ulimit -d "$2" || exit 1
[ -z "$3" ] || exec ${filterDescriptor}<"$3" || exit 1; shift 3; exec "$@"`;

/**
 * Node marks the descriptors that it inherited as close-on-exec, but none after the first gap above 15: a worker passes those on to every
 * program that it starts. All are closed before the limit of open files is set, under which listing them could fail. A POSIX shell can
 * close only numbers up to 9, and bash all of them. Usually there are no others, and then bash is not started.
 */
const closeOthers = `for f in /proc/self/fd/??*; do [ ! -h "$f" ] || eval "exec \${f##*/}>&-"; done; exec /bin/sh -c "$@"`;
const close = `4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
for f in /proc/self/fd/??*; do [ ! -h "$f" ] || exec bash -c '${closeOthers}' bash "$@"; done; entry=$1; shift 2; eval "$entry"`;

export interface HolderEntry {
  readonly command: readonly string[];
  /** Whether the command keeps file descriptor 3. It always keeps 0, 1 and 2. */
  readonly reportsPid: boolean;
  /** A file that the command reads from `filterDescriptor`. */
  readonly filter?: string;
}

export interface HolderLimits {
  readonly groups: readonly string[];
  readonly limits: SandboxLimits;
  /** Without a group for memory, each process gets a limit of its own memory, which no program can raise. */
  readonly isMemoryBounded: boolean;
}

export function renderEntry({ groups, limits, isMemoryBounded }: HolderLimits, holder: HolderEntry): string[] {
  const { command, reportsPid, filter = '' } = holder;
  const dataKiB = isMemoryBounded ? '' : String(Math.max(limits.memoryMiB, leastDataMiB) * 1024);
  const openFiles = String(Math.min(limits.openFiles, readHardOpenFiles()));
  return [
    '/bin/sh',
    '-c',
    `exec ${reportsPid ? '' : '3>&- '}${close}`,
    'sh',
    entry,
    'sh',
    ...groups,
    '--',
    openFiles,
    dataKiB,
    filter,
    ...command,
  ];
}

/** Only privileged processes can raise their hard limit. */
function readHardOpenFiles(): number {
  const [, hard = ''] = /^Max open files\s+\S+\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  return Number.isNaN(Number(hard)) ? Number.POSITIVE_INFINITY : Number(hard);
}
