// What the kernel counted for a sandbox: the CPU time of everything that ever ran in it, whether anything in it is busy at this moment, and
// how many of its processes were killed for lack of memory. An agent can change none of it.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SandboxUse } from '../sandbox.ts';
import type { CgroupBase } from './cgroups.ts';

/** Reads the use of the sandbox with these groups, or of the descendants of its first process where there are none. */
export function openUse(bases: readonly CgroupBase[], name: string): (first: number | undefined) => SandboxUse {
  const folderOf = (wanted: CgroupBase['controller']) => {
    const base = bases.find(({ controller }) => controller === wanted);
    return base && { version: base.version, folder: join(base.folder, name) };
  };
  const [cpu, cpuacct, memory] = [folderOf('cpu'), folderOf('cpuacct'), folderOf('memory')];
  const usage = cpu?.version === 2 ? join(cpu.folder, 'cpu.stat') : cpuacct && join(cpuacct.folder, 'cpuacct.usage');
  const listed = cpu ?? cpuacct ?? memory;
  const threads = listed && join(listed.folder, listed.version === 1 ? 'tasks' : 'cgroup.threads');
  return (first) => {
    const tree = threads === undefined || usage === undefined ? readTree(first) : undefined;
    return {
      cpuMs: (usage === undefined ? undefined : readUsageMs(usage)) ?? tree?.cpuMs ?? 0,
      isBusy: threads === undefined ? (tree?.isBusy ?? false) : hasBusyThread(readText(threads)),
      ...(memory ? readKills(memory.folder, memory.version) : { ownOomKills: 0, foreignOomKills: 0 }),
    };
  };
}

/** The CPU time of a group in milliseconds, in either version; undefined when the group is gone. */
export function readUsageMs(file: string): number | undefined {
  const text = readText(file);
  if (text === '') return undefined;
  const microseconds = /^usage_usec (\d+)/m.exec(text)?.[1];
  return microseconds === undefined ? Number(text) / 1e6 : Number(microseconds) / 1e3;
}

/** Running, ready to run without a core, or waiting for the disk or for memory: in none of these states does a program sleep by its own will. */
function hasBusyThread(ids: string): boolean {
  return ids.split('\n').some((id) => id !== '' && isBusyThread(id));
}

/** One that waits for the child of its vfork is shown like one that waits for the disk, for as long as the child likes. */
function isBusyThread(id: string): boolean {
  const state = readStat(id)?.[0];
  return state === 'R' || (state === 'D' && !/fork|clone/.test(readText(`/proc/${id}/wchan`)));
}

/** The fields of /proc/PID/stat from the state on. */
function readStat(id: string): string[] | undefined {
  const text = readText(`/proc/${id}/stat`);
  return text === '' ? undefined : text.slice(text.lastIndexOf(')') + 2).split(' ');
}

const tickMs = 10;

/** Without groups: what is alive, with the children that it waited for. Process 1 waits for all orphans. */
function readTree(first: number | undefined): Pick<SandboxUse, 'cpuMs' | 'isBusy'> {
  const pids = first === undefined ? [] : [String(first)];
  let [ticks, isBusy] = [0, false];
  for (const pid of pids) {
    for (const thread of listThreads(pid)) {
      pids.push(...readText(`/proc/${pid}/task/${thread}/children`).split(' ').filter(Boolean));
      isBusy ||= isBusyThread(thread);
    }
    ticks += (readStat(pid) ?? []).slice(11, 15).reduce((sum, one) => sum + Number(one), 0);
  }
  return { cpuMs: ticks * tickMs, isBusy };
}

function listThreads(pid: string): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return []; // it has ended
  }
}

function readKills(folder: string, version: 1 | 2): Pick<SandboxUse, 'ownOomKills' | 'foreignOomKills'> {
  const text = readText(join(folder, version === 1 ? 'memory.oom_control' : 'memory.events'));
  const kills = Number(/^oom_kill (\d+)/m.exec(text)?.[1] ?? 0);
  const isOwn = kills > 0 && hasReachedLimit(folder, version, text);
  return { ownOomKills: isOwn ? kills : 0, foreignOomKills: isOwn ? 0 : kills };
}

/** Whether the group ran into its own limit of memory, as opposed to the machine running out of memory. */
function hasReachedLimit(folder: string, version: 1 | 2, events: string): boolean {
  if (version === 2) return /^oom [1-9]/m.test(events);
  const [peak, limit] = ['memory.max_usage_in_bytes', 'memory.limit_in_bytes'].map((file) => Number(readText(join(folder, file))));
  return peak !== undefined && limit !== undefined && peak > 0.98 * limit;
}

/** Reads at once: these files are never on a disk, and a read through the thread pool costs ten times as much. */
function readText(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return ''; // it has ended
  }
}
