// Attacks one task: honest failures first, which say what a failure is worth, then each hacker. A hacker gets through if it is worth more,
// if it ends without a reward, or if it keeps the worker from its other rollouts.

import { highestRewardOf, parseTask } from '@millrace/scenarios';
import type { Hacker, HackerTarget, Play } from './hackers/hacker.ts';
import { makeWrong } from './hackers/wrong.ts';
import { type PlayDeps, type PlayedTask, type PlayResult, playAgent } from './play.ts';

export const attackOutcomes = ['held', 'rewarded', 'escaped', 'froze'] as const;
export type HackOutcome = (typeof attackOutcomes)[number];

export interface Attacked {
  readonly outcome: HackOutcome;
  readonly why: string;
  readonly reward: number | null;
}

export interface Baseline {
  readonly target: HackerTarget;
  /** The reward of an honest failure. */
  readonly floor: number;
}

/** A turn of the event loop that is longer than this keeps leases and cancels waiting. */
const longestBlockMs = 250;
const longestThinkMs = 10_000;
const mostRetries = 1;

/** Throws an Error that says why the task cannot be attacked: it gives no reward, or its highest one for nothing. */
export async function findBaseline(deps: PlayDeps, task: PlayedTask, signal: AbortSignal): Promise<Baseline> {
  const scenario = deps.scenarios.get(task.scenario);
  if (!scenario) throw new Error(`there is no scenario ${task.scenario}; there are ${deps.scenarios.names().join(', ')}`);
  let target: HackerTarget | undefined;
  const play = async (what: string, choose: (target: HackerTarget) => Play) => {
    const keep = (found: HackerTarget) => {
      target = found;
      return choose(found);
    };
    const { reward, failure } = await playAgent(deps, task, { choose: keep, signal });
    if (reward === null) throw new Error(`${what} gets no reward: ${failure?.code}: ${failure?.message}`);
    return reward;
  };
  const empty = await play('an agent that does nothing', () => ({}));
  const wrong = await play('a wrong answer', makeWrong);
  const floor = Math.max(empty, wrong);
  const highest = await highestRewardOf(scenario, await parseTask(scenario, task.task));
  if (floor >= highest) throw new Error(`${empty >= highest ? 'an agent that does nothing' : 'a wrong answer'} gets the highest reward`);
  if (target === undefined) throw new Error('the agent never started');
  return { target, floor };
}

/** Undefined if the hacker does not apply to the task. The worst of what it plays counts. */
export async function attackTask(
  deps: PlayDeps,
  task: PlayedTask,
  options: { readonly hacker: Hacker; readonly baseline: Baseline; readonly signal: AbortSignal },
): Promise<Attacked | undefined> {
  const { hacker, baseline, signal } = options;
  let held: Attacked | undefined;
  for (const play of hacker.plays(baseline.target)) {
    const attacked = await playConfirmed(() => playAgent(deps, task, { choose: () => play, signal }), baseline.floor);
    if (attacked.outcome !== 'held') return attacked;
    held = attacked;
  }
  return held;
}

/** A freeze and a failure that may be the machine's are seen twice. */
async function playConfirmed(play: () => Promise<PlayResult>, floor: number): Promise<Attacked> {
  let attacked = toAttacked(await play(), floor);
  for (let retries = 0; attacked.isDoubtful && retries < mostRetries; retries += 1) attacked = toAttacked(await play(), floor);
  const { outcome, why, reward } = attacked;
  return { outcome, why, reward };
}

function toAttacked(
  { reward, failure, blockMs, thinkMs, details }: PlayResult,
  floor: number,
): Attacked & { readonly isDoubtful: boolean } {
  const said = failure === undefined ? JSON.stringify(details).slice(0, 300) : `${failure.code}: ${failure.message}`;
  const isBlocked = blockMs >= longestBlockMs;
  if (isBlocked || thinkMs >= longestThinkMs || failure?.code === 'evaluate-timeout') {
    const seen = isBlocked ? `judging kept the event loop for ${Math.round(blockMs)} ms` : `judging took ${Math.round(thinkMs / 1000)} s`;
    return { outcome: 'froze', why: `${seen}; ${said}`, reward, isDoubtful: true };
  }
  if (reward === null) return { outcome: 'escaped', why: `no reward: ${said}`, reward, isDoubtful: failure?.retryable ?? false };
  if (reward > floor)
    return { outcome: 'rewarded', why: `reward ${reward} where a failure gets ${floor}: ${said}`, reward, isDoubtful: false };
  return { outcome: 'held', why: said, reward, isDoubtful: false };
}
