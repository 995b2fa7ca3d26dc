// Which machine this is. A machine is a host from one start to the next: its id comes from its name and the id of the boot, so that all
// workers of a host agree on it without asking each other.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { availableParallelism, hostname, totalmem } from 'node:os';

interface Machine {
  readonly id: string;
  readonly name: string;
  readonly cpus: number;
  readonly memoryBytes: number;
}

/** The name is the configured one, else that of the Slurm node, else the host name. Memory is the job's where Slurm limits it. */
export function readMachine(name: string | undefined, env: Readonly<Record<string, string | undefined>> = process.env): Machine {
  const known = name ?? (env.SLURMD_NODENAME || hostname());
  const id = `m-${createHash('sha256').update(`${known}\n${readBootId()}`).digest('hex').slice(0, 16)}`;
  const cpus = Number(env.SLURM_CPUS_ON_NODE) || availableParallelism();
  // Slurm sets the first or the second, whether the job asked for it or got the default of its partition.
  const jobMiB = Number(env.SLURM_MEM_PER_NODE) || cpus * (Number(env.SLURM_MEM_PER_CPU) || 0);
  const memoryBytes = jobMiB > 0 ? Math.min(totalmem(), jobMiB * 2 ** 20) : totalmem();
  return { id, name: known, cpus, memoryBytes };
}

function readBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return ''; // not on Linux, or hidden: the name alone tells machines apart
  }
}
