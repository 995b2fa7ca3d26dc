// Plays hackers against tasks in a few processes at a time. Each is bounded in time, and none leaves a sandbox, however it ends.

import { join } from 'node:path';
import type { Limits } from '@millrace/protocol';
import type { ServiceConfig } from '@millrace/server';
import type { HackOutcome } from './attack-task.ts';
import type { Hacker } from './hackers/hacker.ts';
import { Player } from './player.ts';

interface AttackedTask {
  readonly name: string;
  readonly digest: string;
  readonly scenario: string;
  readonly task: Readonly<Record<string, unknown>>;
  readonly limits: Limits;
}

/** `broken`: the task cannot be attacked, and `hacker` is absent. */
export interface AttackResult {
  readonly task: string;
  readonly hacker?: Hacker;
  readonly outcome: HackOutcome | 'skipped' | 'broken';
  readonly why: string;
  readonly reward: number | null;
}

interface AttackRunOptions {
  readonly config: ServiceConfig;
  /** For the files of the players. */
  readonly folder: string;
  readonly hackers: readonly Hacker[];
  readonly parallel: number;
  /** The longest time to judge one attack. */
  readonly limitS: number;
  readonly signal: AbortSignal;
  onResult(result: AttackResult): void;
}

/** Resolves when everything was played, or when the signal aborts. */
export async function runAttacks(tasks: readonly AttackedTask[], options: AttackRunOptions): Promise<void> {
  const { config, folder, signal, hackers } = options;
  const waiting = tasks.flatMap((task) => hackers.map((hacker) => ({ task, hacker })));
  const broken = new Set<string>();
  const work = async (_: unknown, index: number) => {
    await using player = new Player({ config, folder: join(folder, `player-${index}`) });
    for (let next = waiting.shift(); next && !signal.aborted; next = waiting.shift()) {
      if (broken.has(next.task.digest)) continue;
      const result = await attack(player, { ...next, options });
      if (result === undefined || broken.has(next.task.digest)) continue;
      if (result.outcome === 'broken') broken.add(next.task.digest);
      options.onResult(result);
    }
  };
  await Promise.all(Array.from({ length: Math.min(options.parallel, waiting.length) }, work));
}

interface Attacking {
  readonly task: AttackedTask;
  readonly hacker: Hacker;
  readonly options: AttackRunOptions;
}

/** Undefined once the signal has aborted. */
async function attack(player: Player, { task, hacker, options }: Attacking): Promise<AttackResult | undefined> {
  const { signal, limitS } = options;
  const limits = {
    ...task.limits,
    evaluate_timeout_s: Math.min(task.limits.evaluate_timeout_s, limitS),
    tool_timeout_s: Math.min(task.limits.tool_timeout_s, limitS),
  };
  const order = { kind: 'attack' as const, key: task.digest, scenario: task.scenario, task: task.task, limits, hacker: hacker.name };
  try {
    const said = await player.attack(order, signal);
    if (said.kind === 'attacked') return { task: task.name, hacker, outcome: said.outcome, why: said.why, reward: said.reward };
    if (said.kind === 'broken') return { task: task.name, outcome: 'broken', why: said.why, reward: null };
    return { task: task.name, hacker, outcome: 'skipped', why: '', reward: null };
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  }
}
