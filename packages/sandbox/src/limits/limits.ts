// The limits of a sandbox and how they are enforced: by control groups where this process can create them, otherwise by limits of single
// processes. A sandbox's groups are recorded in its folder before they are created, and removed before the folder is.

import { readFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { join } from 'node:path';
import type { Log } from '@millrace/base/log';
import { definedOf, type ProgramLimits } from '@millrace/protocol';
import type { SandboxLimits } from '../config.ts';
import type { SandboxUse } from '../sandbox.ts';
import { openBusyWatch } from './busy-watch.ts';
import { CallGate } from './call-gate.ts';
import { type CgroupBase, findCgroups, listGroups, removeGroups, renderGroups } from './cgroups.ts';
import { openMemoryWatch } from './memory-watch.ts';
import { openOwnLimit } from './own-limit.ts';
import { type HolderEntry, renderEntry } from './rlimits.ts';
import { openUse } from './use.ts';

/** One for each driver: what this process can limit does not change while it runs. */
export interface Limiter {
  readonly bases: readonly CgroupBase[];
  /** Whether a control group limits all memory of a sandbox. Otherwise only the memory of single processes is limited. */
  readonly isMemoryBounded: boolean;
  /** For the sandbox with this name and folder. Its groups are recorded and made by the process that enters them. */
  confine(sandbox: { readonly id: string; readonly folder: string }, limits: SandboxLimits): Confinement;
}

/** The limits of one sandbox, set up before it starts. */
export interface Confinement {
  readonly limits: SandboxLimits;
  /** Shared by all sandboxes of the driver. */
  readonly gate: CallGate;
  /** Its groups, and then the record of them: the order in which they are removed. */
  readonly paths: readonly string[];
  /** Limits that no group enforces: the executor sets them on the programs that it starts. */
  readonly programLimits: ProgramLimits;
  /** Wraps the driver's command so that its groups are made and its limits hold from its first instruction, in this mount namespace, and so that it inherits no file of the worker. */
  enter(entry: HolderEntry, mounts?: string): string[];
  /** Watches the CPU time of a started sandbox, and its memory if no group limits it, given its first process. Returns what ends the watch. */
  watch(first: number): () => void;
  /** What the kernel counted, given the first process, which is needed where there are no groups. Nothing after `remove`. */
  readUse(first: number | undefined): SandboxUse;
  /** Whether the sandbox itself used up what the kernel refused, as far as it shows. */
  isOwnLimit(errno: string | undefined): boolean;
  /** Whether the agent caused the end of the executor, as far as the kernel shows. Call it before `remove`. */
  explainEnd(how: string): AgentFault | undefined;
  /** Kills what is left in its groups, and removes them. */
  remove(): Promise<void>;
}

/** The agent caused the death of its sandbox. */
export interface AgentFault {
  readonly code: 'sandbox-limit' | 'sandbox-killed';
  readonly message: string;
}

interface LimiterOptions {
  /** The executor's program, as this user can run and read it. */
  readonly program: string;
  readonly log: Log;
}

export async function openLimiter({ program, log }: LimiterOptions): Promise<Limiter> {
  const bases = await findCgroups({ enter: true });
  const isMemoryBounded = bases.some(({ controller }) => controller === 'memory');
  const memory = openMemoryWatch({ log });
  const busy = openBusyWatch(bases);
  const gate = new CallGate();
  return {
    bases,
    isMemoryBounded,
    confine({ id, folder }, limits) {
      const groups = listGroups(bases, id);
      const steps = ['create', join(folder, recordName), 'text', groups.join('\n'), ...renderGroups(bases, id, limits)];
      const readUse = openUse(bases, id);
      return {
        limits,
        gate,
        paths: [...groups, join(folder, recordName)],
        programLimits: chooseProgramLimits(bases, limits),
        enter: (entry, mounts) => renderEntry({ program, groups: steps, limits, isMemoryBounded }, entry, mounts),
        watch(first) {
          const ends = [busy.add(id), ...(isMemoryBounded ? [] : [memory.add(first, limits.memoryMiB)])];
          return () => ends.forEach((end) => void end());
        },
        readUse,
        isOwnLimit: openOwnLimit(bases, { name: id, folder }),
        explainEnd: (how) => explainEnd(how, limits, readUse(undefined).ownOomKills > 0),
        remove: () => removeGroups(groups),
      };
    },
  };
}

const recordName = 'cgroups';

/** For a sandbox whose owner is dead: kills the processes in the groups that its folder records, and removes the groups. */
export async function removeRecordedGroups(folder: string): Promise<void> {
  const text = await readFile(join(folder, recordName), 'utf8').catch(() => ''); // the owner died before it recorded any
  await removeGroups(text.split('\n').filter(Boolean));
}

function chooseProgramLimits(bases: readonly CgroupBase[], { processes, memoryMiB }: SandboxLimits): ProgramLimits {
  const has = (name: CgroupBase['controller']) => bases.some(({ controller }) => controller === name);
  return definedOf({ processes: has('pids') ? undefined : processes, memory_mib: has('memory') ? undefined : memoryMiB });
}

const { signals } = constants;

/** Signals that end process 1 without a sender inside: the kernel's when memory runs out, and the process's own faults. */
const unsentSignals = [signals.SIGKILL, signals.SIGSEGV, signals.SIGABRT, signals.SIGILL, signals.SIGBUS, signals.SIGFPE, signals.SIGTRAP];

/** The executor itself never exits with 0. */
function explainEnd(how: string, limits: SandboxLimits, isOutOfMemory: boolean): AgentFault | undefined {
  if (/^exit 0\b/.test(how)) return { code: 'sandbox-killed', message: 'a process inside sent its executor a real-time signal' };
  const signal = /^ended by SIGKILL/.test(how) ? signals.SIGKILL : Number(/^exit (\d+)/.exec(how)?.[1] ?? 0) - 128;
  if (signal === signals.SIGKILL && isOutOfMemory) {
    return { code: 'sandbox-limit', message: `it ran out of memory (memoryMiB ${limits.memoryMiB}, diskMiB ${limits.diskMiB})` };
  }
  if (signal <= 0 || unsentSignals.includes(signal)) return undefined;
  return { code: 'sandbox-killed', message: `a process inside sent its executor signal ${signal}` };
}
