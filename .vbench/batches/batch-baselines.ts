// The baselines for batches, on the same stream of tasks: sample-filter-repeat, fixed over-sampling, and an oracle that knows in
// advance how far into the stream it must sample.

import { taskOf, type World } from './batch-worlds.ts';

export interface Cost {
  readonly seconds: number;
  /** Sampled seconds, including those of stopped rollouts. */
  readonly rolloutSeconds: number;
  /** The part that is not in a requested informative group. */
  readonly wastedSeconds: number;
  readonly tokens: number;
  /** How many tasks of the stream were consumed. */
  readonly tasks: number;
}

/** Samples `target` tasks, waits for all, keeps the informative groups, and repeats until there are enough. */
export function sampleFilterRepeat(world: World, target: number, from: number): Cost {
  return repeat(world, { target, from, perRound: target });
}

/** The same with twice the tasks in each round. */
export function overSample(world: World, target: number, from: number): Cost {
  return repeat(world, { target, from, perRound: 2 * target });
}

function repeat(world: World, plan: { readonly target: number; readonly from: number; readonly perRound: number }): Cost {
  let [found, seconds, rolloutSeconds, wastedSeconds, tokens, at] = [0, 0, 0, 0, 0, plan.from];
  while (found < plan.target) {
    const round = schedule(world, at, plan.perRound);
    found += round.informative;
    seconds += round.seconds;
    rolloutSeconds += round.rolloutSeconds;
    wastedSeconds += round.wastedSeconds;
    tokens += round.tokens;
    at += plan.perRound;
  }
  return { seconds, rolloutSeconds, wastedSeconds, tokens, tasks: at - plan.from };
}

/** Samples exactly the tasks up to the one with the last informative group. */
export function oracle(world: World, target: number, from: number): Cost {
  let [found, count] = [0, 0];
  while (found < target) {
    found += Number(taskOf(world, from + count).informative);
    count += 1;
  }
  return { ...schedule(world, from, count), tasks: count };
}

/** Schedules all siblings of these tasks in order, each on the slot that becomes free first. */
function schedule(world: World, from: number, count: number) {
  const free = new Float64Array(world.slots);
  let [informative, rolloutSeconds, wastedSeconds, tokens, seconds] = [0, 0, 0, 0, 0];
  for (let index = from; index < from + count; index += 1) {
    const task = taskOf(world, index);
    informative += Number(task.informative);
    for (const sibling of task.siblings) {
      const slot = free.indexOf(Math.min(...free));
      const end = (free[slot] ?? 0) + sibling.seconds;
      free[slot] = end;
      seconds = Math.max(seconds, end);
      rolloutSeconds += sibling.seconds;
      wastedSeconds += task.informative ? 0 : sibling.seconds;
      tokens += sibling.tokens;
    }
  }
  return { informative, seconds, rolloutSeconds, wastedSeconds, tokens };
}
