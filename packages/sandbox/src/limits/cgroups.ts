// Control groups of sandboxes, for cgroup versions 1 and 2. They are created below the worker's own group and nowhere else, so anything
// that limits the worker (a Slurm job, a service manager) limits its sandboxes too.

import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { sleep } from '@millrace/base/clock';
import { sendSignal } from '@millrace/base/processes';
import type { SandboxLimits } from '../config.ts';

/** Those that limit something. */
export const controllers = ['cpu', 'memory', 'pids'] as const;
/** `cpuacct` counts CPU time in version 1; in version 2, `cpu` does. */
type Controller = (typeof controllers)[number] | 'cpuacct';

/** A folder in which groups with this controller can be created. */
export interface CgroupBase {
  readonly controller: Controller;
  readonly version: 1 | 2;
  readonly folder: string;
}

/** For the executor and bwrap or Apptainer with its threads, which are not the agent's, and to start a new shell. */
const spareProcesses = 24;
const mib = 1 << 20;
const periodUs = 100_000;
/**
 * All sandboxes together have the weight of one process on each core, and the server and its workers twice that: a worker that wakes up
 * does not queue behind hundreds of sandboxes. With a larger weight it wakes up for single events, which costs more than it gains. In version
 * 2 nothing else competes at this level, so the sandboxes keep the default weight.
 */
const cores = Math.min(64, availableParallelism()); // more would exceed the largest weight of version 1
const weights = {
  1: { file: 'cpu.shares', workers: 2048 * cores, sandboxes: 1024 * cores },
  2: { file: 'cpu.weight', workers: 200, sandboxes: 100 },
} as const;
const removeWaitMs = 15_000;

/** The settings of a group, in the order in which they are written. Not every kernel has the `optional` files. */
export function renderSettings({ controller, version }: Pick<CgroupBase, 'controller' | 'version'>, limits: SandboxLimits): Setting[] {
  const memory = String((limits.memoryMiB + limits.diskMiB) * mib);
  if (controller === 'cpuacct') return [];
  const quota = Math.max(1000, Math.round(limits.cpus * periodUs));
  if (controller === 'pids') return [{ file: 'pids.max', value: String(limits.processes + spareProcesses) }];
  if (version === 1) {
    if (controller === 'memory')
      return [
        { file: 'memory.limit_in_bytes', value: memory },
        { file: 'memory.memsw.limit_in_bytes', value: memory, optional: true },
      ];
    return [
      { file: 'cpu.cfs_period_us', value: String(periodUs) },
      { file: 'cpu.cfs_quota_us', value: String(quota) },
    ];
  }
  if (controller === 'memory')
    return [
      { file: 'memory.max', value: memory },
      { file: 'memory.swap.max', value: '0', optional: true },
    ];
  return [{ file: 'cpu.max', value: `${quota} ${periodUs}` }];
}

interface Setting {
  readonly file: string;
  readonly value: string;
  readonly optional?: boolean;
}

/** The folders of one sandbox's groups, without duplicates: one folder may have several controllers. */
export function listGroups(bases: readonly CgroupBase[], name: string): string[] {
  return [...new Set(bases.map(({ folder }) => join(folder, name)))];
}

/** As steps of `native/enter`: they are made by the process that then enters them. */
export function renderGroups(bases: readonly CgroupBase[], name: string, limits: SandboxLimits): string[] {
  const groups = listGroups(bases, name);
  const settings = bases.flatMap((base) =>
    renderSettings(base, limits).flatMap(({ file, value, optional }) => [
      ...['file', join(base.folder, name, file)],
      ...[optional ? 'try' : 'text', value], // a kernel without swap accounting has no such file
    ]),
  );
  return [...groups.flatMap((group) => ['make', group]), ...settings, ...groups.flatMap((group) => ['group', group])];
}

function set(file: string, value: string): Promise<void> {
  return writeFile(file, value, { flag: 'r+' });
}

/** Kills the processes in the groups and removes them. A group may already be gone. */
export async function removeGroups(groups: readonly string[]): Promise<void> {
  for (const group of groups) {
    for (let waitedMs = 0; ; waitedMs += 10) {
      const left = await rmdir(group).then(
        () => undefined,
        (error: NodeJS.ErrnoException) => error,
      );
      if (left === undefined || left.code === 'ENOENT') break;
      if (left.code !== 'EBUSY' || waitedMs >= removeWaitMs) throw left;
      for (const pid of await readPids(group)) sendSignal(pid, 'SIGKILL');
      await sleep(10); // they are not our children, so their end has no event
    }
  }
}

/** Lets a process that was frozen through version 1 of the freezer die: there, a killed process waits until it is thawed. */
export async function thawProcess(pid: number): Promise<void> {
  const readGroup = async (process: string) => /^\d+:(?:.*,)?freezer(?:,.*)?:(.*)$/m.exec(await readText(`/proc/${process}/cgroup`))?.[1];
  const [own, frozen] = [await readGroup('self'), await readGroup(String(pid))];
  const [, point] = /^\d+ \d+ \S+ \S+ (\S+) .* - cgroup \S+ (?:\S+,)?freezer(?:,\S+)?$/m.exec(await readText('/proc/self/mountinfo')) ?? [];
  if (own === undefined || frozen === undefined || point === undefined) return;
  for (let group = frozen; group !== own && group !== '/'; group = dirname(group))
    await set(join(point, group, 'freezer.state'), 'THAWED').catch(() => {}); // not ours to change, or already gone
}

async function readPids(group: string): Promise<number[]> {
  const text = await readFile(join(group, 'cgroup.procs'), 'utf8').catch(() => ''); // already gone
  return text.split('\n').map(Number).filter(Boolean);
}

const leaf = 'millrace-workers';
const parent = 'millrace-sandboxes';

/**
 * The controllers that this process can use for sandboxes. `enter` moves this process into a subgroup of the group that it was started in,
 * and creates the group for sandboxes next to it: each has its own weight, and in version 2 a group holds either processes or groups with
 * limits. Without `enter`, nothing is changed.
 */
export async function findCgroups({ enter }: { readonly enter: boolean }): Promise<CgroupBase[]> {
  const own = parseOwnGroups(await readText('/proc/self/cgroup'), await readText('/proc/self/mountinfo'));
  const found = await Promise.all(own.map((base) => (base.version === 2 ? checkUnified(base, enter) : checkWritable(base))));
  const bases = found.flatMap((base) => base ?? []);
  if (!enter) return bases;
  for (const base of bases) if (base.controller === 'cpu') await enterLeaf(base).catch(() => {}); // then it has the weight of any process
  return Promise.all(bases.map((base) => openParent(base).catch(() => base))); // without the common parent, each sandbox has its own weight
}

async function enterLeaf(base: CgroupBase): Promise<void> {
  const folder = await moveIntoLeaf(base);
  await setWeight(base, folder, 'workers');
}

/** Workers inherit the place of their server: moving again would make the kernel wait for nothing. */
async function moveIntoLeaf(base: CgroupBase): Promise<string> {
  const folder = join(base.folder, leaf);
  await mkdir(folder, { recursive: true });
  if (!(await readPids(folder)).includes(process.pid)) await set(join(folder, 'cgroup.procs'), String(process.pid));
  return folder;
}

async function setWeight({ version }: CgroupBase, folder: string, whose: 'workers' | 'sandboxes'): Promise<void> {
  await set(join(folder, weights[version].file), String(weights[version][whose]));
}

/** The group that contains all sandboxes. It is never removed: another worker may be about to use it. */
async function openParent(base: CgroupBase): Promise<CgroupBase> {
  const folder = join(base.folder, parent);
  await mkdir(folder, { recursive: true });
  if (base.version === 2) await set(join(folder, 'cgroup.subtree_control'), `+${base.controller}`);
  if (base.controller === 'cpu') await setWeight(base, folder, 'sandboxes');
  return { ...base, folder };
}

async function checkWritable(base: CgroupBase): Promise<CgroupBase | undefined> {
  // Another process may have the same pid, in its own namespace, and the same group.
  const trial = join(base.folder, `trial-${base.controller}-${randomUUID()}`);
  try {
    await mkdir(trial);
    await rmdir(trial);
    return base;
  } catch {
    return undefined; // not delegated to us, or read-only
  }
}

async function checkUnified(base: CgroupBase, enter: boolean): Promise<CgroupBase | undefined> {
  const { folder } = base;
  if (!(await readText(join(folder, 'cgroup.controllers'))).split(/\s/).includes(base.controller)) return undefined;
  const usable = await checkWritable(base);
  if (!usable || !enter) return usable;
  const enable = () => set(join(folder, 'cgroup.subtree_control'), `+${base.controller}`);
  try {
    await enable().catch(async () => {
      await moveIntoLeaf(base);
      await enable();
    });
    return usable;
  } catch {
    return undefined; // other processes are in this group: it is not ours alone
  }
}

/** The folder of this process's group in each hierarchy, or the one around it if it has entered, from the two files in /proc that describe them. */
export function parseOwnGroups(cgroup: string, mountinfo: string): CgroupBase[] {
  const mounts = mountinfo.split('\n').flatMap((line) => {
    const [, root, point, type, options] = /^\d+ \d+ \S+ (\S+) (\S+) .* - (cgroup2?) \S+ (\S+)$/.exec(line) ?? [];
    return root && point && type && options ? [{ root, point, type, options: options.split(',') }] : [];
  });
  const paths = cgroup.split('\n').flatMap((line) => {
    const [, names, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    return names !== undefined && path !== undefined ? [{ names: names.split(','), path }] : [];
  });
  return ([...controllers, 'cpuacct'] as const).flatMap((controller) => {
    const named = paths.find(({ names }) => names.includes(controller));
    const version = named ? 1 : 2;
    const path = (named ?? paths.find(({ names }) => names[0] === ''))?.path;
    const mount = mounts.find(({ type, options }) =>
      version === 1 ? type === 'cgroup' && options.includes(controller) : type === 'cgroup2',
    );
    if (path === undefined || !mount || (version === 2 && controller === 'cpuacct')) return [];
    const below = mount.root !== '/' && path.startsWith(mount.root) ? path.slice(mount.root.length) : path;
    const folder = join(mount.point, below === '/' ? '' : below);
    return [{ controller, version, folder: basename(folder) === leaf ? dirname(folder) : folder } as const];
  });
}

async function readText(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => ''); // this machine has no such file
}
