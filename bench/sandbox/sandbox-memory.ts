// The memory of open sandboxes: all processes of each, from its holder down, and its control group.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface SandboxMemory {
  /** The proportional set size of all its processes; absent if this user may not read it. */
  readonly pssMiB?: number;
  /** The memory charged to its control group, including page cache; absent if it has none. */
  readonly groupMiB?: number;
  readonly processes: number;
}

/** Measures sandboxes of this process, by their ids. */
export async function measureSandboxMemory(runDir: string, ids: readonly string[]): Promise<SandboxMemory[]> {
  const parents = await readParents();
  return Promise.all(
    ids.map(async (id) => {
      const [first = 0] = (await readFile(join(runDir, id, 'process'), 'utf8')).split(' ').map(Number);
      const members = listTree(parents, findHolder(parents, first));
      const pss = await Promise.all(members.map(readPssMiB));
      const pssMiB = pss.reduce((sum, one) => sum + one, 0);
      const groupMiB = await readGroupMiB(join(runDir, id, 'cgroups'));
      return { processes: members.length, ...(Number.isNaN(pssMiB) ? {} : { pssMiB }), ...(groupMiB === undefined ? {} : { groupMiB }) };
    }),
  );
}

async function readParents(): Promise<Map<number, number>> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, 'latin1').catch(() => ''))); // it has ended
  return new Map(pids.map((pid, index) => [pid, Number(lines[index]?.slice(lines[index].lastIndexOf(')') + 2).split(' ')[1])]));
}

/** The ancestor of the first process of the sandbox that the spawner, a child of this process, has started. */
function findHolder(parents: ReadonlyMap<number, number>, pid: number): number {
  const parent = parents.get(pid) ?? 0;
  return parent <= 1 || parents.get(parent) === process.pid ? pid : findHolder(parents, parent);
}

function listTree(parents: ReadonlyMap<number, number>, root: number): number[] {
  const children = [...parents].filter(([, parent]) => parent === root).map(([pid]) => pid);
  return [root, ...children.flatMap((pid) => listTree(parents, pid))];
}

async function readPssMiB(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => ''); // another user's process, or an unreadable program
  return Number(/^Pss:\s+(\d+) kB/m.exec(text)?.[1] ?? Number.NaN) / 1024;
}

/** Reads the groups from the list in the sandbox's folder. */
async function readGroupMiB(list: string): Promise<number | undefined> {
  const groups = (await readFile(list, 'utf8')).split('\n').filter(Boolean);
  const files = groups.flatMap((group) => ['memory.current', 'memory.usage_in_bytes'].map((name) => join(group, name)));
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8').catch(() => ''))); // a file of the other cgroup version
  const bytes = texts.find(Boolean);
  return bytes === undefined ? undefined : Number(bytes) / 2 ** 20;
}
