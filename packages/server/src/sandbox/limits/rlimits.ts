// Limits that need no cgroup: open files and core files of each process, and the place of a sandbox in the order in which the kernel kills
// processes when memory runs out. They are set on the holder before it runs.

import { readFileSync } from 'node:fs';
import type { SandboxLimits } from '../config.ts';

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
echo ${oomScore} > /proc/self/oom_score_adj; ulimit -c 0; ulimit -n "$1" || exit 1; shift; exec "$@"`;

export function renderEntry(groups: readonly string[], limits: SandboxLimits, command: readonly string[]): string[] {
  return ['/bin/sh', '-c', entry, 'sh', ...groups, '--', String(Math.min(limits.openFiles, readHardOpenFiles())), ...command];
}

/** Only privileged processes can raise their hard limit. */
function readHardOpenFiles(): number {
  const [, hard = ''] = /^Max open files\s+\S+\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  return Number.isNaN(Number(hard)) ? Number.POSITIVE_INFINITY : Number(hard);
}
