// What one sandbox may use, and who keeps it to that: control groups where this process can make them, limits of single processes
// otherwise. A sandbox's groups are written down in its folder before they are made, and removed before the folder is.

import { readFile, writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { join } from 'node:path';
import { RolloutError } from '@millrace/protocol';
import { type SandboxConfig, type SandboxLimits, sandboxLimits } from '../config.ts';
import type { SandboxSpec } from '../sandbox.ts';
import { type CgroupBase, findCgroups, listGroups, makeGroups, removeGroups, wasOutOfMemory } from './cgroups.ts';
import { type ProgramLimits, renderEntry } from './rlimits.ts';

/** One for each driver: what this process can limit does not change while it lives. */
export interface Limiter {
  readonly bases: readonly CgroupBase[];
  /** Writes down and makes the groups of the sandbox with this name and folder. */
  confine(sandbox: { readonly id: string; readonly folder: string }, limits: SandboxLimits): Promise<Confinement>;
}

/** The limits of one sandbox, made before it starts. */
export interface Confinement {
  readonly limits: SandboxLimits;
  /** For the executor, which puts them on what it starts: what no group keeps. */
  readonly forPrograms: ProgramLimits;
  /** The driver's command in a form that is inside its limits from its first instruction on. */
  enter(command: readonly string[]): string[];
  /** What the agent did that ended the executor, as far as the kernel tells; to be asked before `remove`. */
  explainEnd(how: string): Promise<AgentEnd | undefined>;
  remove(): Promise<void>;
}

/** An end of a sandbox that is its agent's doing. */
export interface AgentEnd {
  readonly code: 'sandbox-limit' | 'sandbox-killed';
  readonly message: string;
}

export async function openLimiter(): Promise<Limiter> {
  const bases = await findCgroups({ enter: true });
  return {
    bases,
    async confine({ id, folder }, limits) {
      const groups = listGroups(bases, id);
      await writeFile(join(folder, recordName), groups.join('\n'));
      await makeGroups(bases, id, limits).catch(async (error) => {
        await removeGroups(groups);
        throw error;
      });
      return {
        limits,
        forPrograms: chooseProgramLimits(bases, limits),
        enter: (command) => renderEntry(groups, limits, command),
        explainEnd: async (how) => explainEnd(how, limits, await wasOutOfMemory(bases, id)),
        remove: () => removeGroups(groups),
      };
    },
  };
}

const recordName = 'cgroups';

/** For a sandbox whose owner is dead: kills what is in the groups that its folder names, and removes them. */
export async function removeRecordedGroups(folder: string): Promise<void> {
  const text = await readFile(join(folder, recordName), 'utf8').catch(() => ''); // its owner died before there were any
  await removeGroups(text.split('\n').filter(Boolean));
}

function chooseProgramLimits(bases: readonly CgroupBase[], { processes, memoryMiB }: SandboxLimits): ProgramLimits {
  const has = (name: CgroupBase['controller']) => bases.some(({ controller }) => controller === name);
  return { ...(has('pids') ? {} : { processes }), ...(has('memory') ? {} : { memoryMiB }) };
}

const { signals } = constants;

/** What can end a first process without anybody sending it: the kernel, for want of memory, and faults of its own. */
const unsent = [signals.SIGKILL, signals.SIGSEGV, signals.SIGABRT, signals.SIGILL, signals.SIGBUS, signals.SIGFPE, signals.SIGTRAP];

/** The executor itself never exits with 0. */
function explainEnd(how: string, limits: SandboxLimits, isOutOfMemory: boolean): AgentEnd | undefined {
  if (/^exit 0\b/.test(how)) return { code: 'sandbox-killed', message: 'its executor was sent a real-time signal from inside' };
  const signal = /^ended by SIGKILL/.test(how) ? signals.SIGKILL : Number(/^exit (\d+)/.exec(how)?.[1] ?? 0) - 128;
  if (signal === signals.SIGKILL && isOutOfMemory) {
    return { code: 'sandbox-limit', message: `its memory is used up (memoryMiB ${limits.memoryMiB}, diskMiB ${limits.diskMiB})` };
  }
  if (signal <= 0 || unsent.includes(signal)) return undefined;
  return { code: 'sandbox-killed', message: `its executor was sent signal ${signal} from inside` };
}

export interface Granted {
  readonly limits: SandboxLimits;
  readonly network: 'none' | 'host';
}

/** What a spec gets under this configuration. Throws `sandbox-refused` with the name of the field that forbids it. */
export function grant(spec: SandboxSpec, config: SandboxConfig): Granted {
  const network = spec.network ?? config.network;
  if (network === 'host' && !config.allowHostNetwork)
    throw new RolloutError('sandbox-refused', "the task asks for network 'host', and sandbox.allowHostNetwork is false");
  const limits = sandboxLimits.safeParse({ ...config.limits, ...spec.limits });
  if (!limits.success) {
    const [issue] = limits.error.issues;
    throw new RolloutError('sandbox-refused', `the task's limits.${issue?.path.join('.')}: ${issue?.message}`);
  }
  return { limits: limits.data, network };
}
