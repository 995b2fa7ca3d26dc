// What limits a sandbox where no cgroup does, and what no cgroup knows: open files of a process, core files. The first half is
// put on the holder before it runs; the second is put by the executor on what it starts, so that the executor is spared.

import { readFileSync } from 'node:fs';
import type { SandboxLimits } from '../config.ts';

/** What the executor puts on every program of the agent; as `limits.json` in the folder that it shares with its worker. */
export interface ProgramLimits {
  readonly processes?: number;
  readonly memoryMiB?: number;
}

/** When memory runs out, the kernel takes a sandbox before it takes a worker. */
const oomScore = 500;

/**
 * Reads cgroup folders up to `--`, enters each, and becomes the rest. The limits hold before the first instruction of the
 * driver's program, and a group that cannot be entered ends it. The thread that writes 0 to `tasks`, of version 1, enters at once,
 * and a shell has one thread; for whole processes the kernel first waits, 5 to 15 ms, until nobody on the machine forks.
 */
const entry = `while [ "$1" != -- ]; do
  if [ -e "$1/tasks" ]; then echo 0 > "$1/tasks"; else echo $$ > "$1/cgroup.procs"; fi || exit 1; shift
done; shift
echo ${oomScore} > /proc/self/oom_score_adj; ulimit -c 0; ulimit -n "$1" || exit 1; shift; exec "$@"`;

export function renderEntry(groups: readonly string[], limits: SandboxLimits, command: readonly string[]): string[] {
  return ['/bin/sh', '-c', entry, 'sh', ...groups, '--', String(Math.min(limits.openFiles, readHardOpenFiles())), ...command];
}

/** It can be lowered by anyone and raised by almost nobody. */
function readHardOpenFiles(): number {
  const [, hard = ''] = /^Max open files\s+\S+\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  return Number.isNaN(Number(hard)) ? Number.POSITIVE_INFINITY : Number(hard);
}
