// An attack: what a hostile agent runs, and what must hold afterwards. Attacks are data; `run-attacks.ts` runs all of them on every driver.

import type { Sandbox, SandboxDriver, SandboxSpec, ShellResult } from '@millrace/sandbox';

export const timeoutMs = 10_000;

/** The driver under attack. */
export interface AttackTarget {
  driver(): SandboxDriver;
}

type AttackFamily = 'escape' | 'limits' | 'starvation' | 'executor' | 'shell' | 'transfer';

export interface Attack {
  /** Completes "an agent that …". */
  readonly name: string;
  readonly family: AttackFamily;
  /** What the agent runs: a command in its shell, a program, or a cell. */
  readonly agent: { readonly shell: string } | { readonly python: string } | { readonly cell: string };
  readonly timeoutMs?: number;
  /** A sandbox of its own with these limits, for attacks that would disturb the next one. Otherwise attacks share one. */
  readonly alone?: SandboxSpec['limits'];
  readonly holds: AttackOutcome;
}

/** What must hold. In addition, after every attack: the sandbox works (unless `mayDie`), and its neighbour does. */
interface AttackOutcome {
  /** The output matches. */
  readonly output?: RegExp;
  /** The output does not match. */
  readonly notOutput?: RegExp;
  /** How the command may end, if it is a command in the shell. */
  readonly ends?: readonly ShellResult['end'][];
  /** The sandbox may die or refuse calls, if the policy is blamed for it. */
  readonly mayDie?: true;
  /** The agent may break its own programs: calls end, with any result or a failure that is blamed on the policy. */
  readonly isSelfHarm?: true;
  /** Anything else, on the machine or in the sandbox. */
  readonly and?: (sandbox: Sandbox) => Promise<void>;
}

/** A prelude for Python programs: C functions, and `attempt`, which prints what an attack achieved. */
export const prelude = `import ctypes, os, signal, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, act):
    try:
        result = act()
        if result is not None and result != -1 and result is not False: print('ACHIEVED', name, result, flush=True)
    except (OSError, MemoryError, ValueError) as error: print('refused', name, error, flush=True)
`;

/** The output of a program in which every attempt was refused. */
export const nothingAchieved = /ACHIEVED/;
