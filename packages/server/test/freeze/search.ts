// Searches for texts that take their reader too long, for a given time: first short ones, and each slow one again at its full length.

import { type FreezeInput, makeInput, mutateInput, type Random, renderInput } from './inputs.ts';
import { targets } from './targets.ts';

export interface SlowInput {
  readonly target: string;
  readonly input: FreezeInput;
  readonly ms: number;
}

const fullLength = 1 << 20;
const shortLength = 1 << 14;

/** CPU time of this thread, in milliseconds. An error is a fast answer. */
export function measure(target: string, input: FreezeInput): number {
  const text = renderInput(input).slice(0, fullLength);
  const before = process.threadCpuUsage();
  try {
    targets[target]?.run(text);
  } catch {} // the caller reports it
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

/** The slowest input of each target, with its time at full length. */
export function searchSlow({
  random,
  untilMs,
  now,
  only,
}: {
  random: Random;
  untilMs: number;
  now: () => number;
  only?: RegExp;
}): SlowInput[] {
  const worst = new Map<string, SlowInput>();
  const names = Object.keys(targets).filter((name) => only?.test(name) ?? true);
  while (now() < untilMs) {
    for (const target of names) {
      const best = worst.get(target);
      const seed = best && random() < 0.3 ? shorten(mutateInput(random, best.input)) : makeInput(random, shortLength);
      const shortMs = measure(target, seed);
      // A reader that takes longer than its share of the text is tried at full length, up to a quarter first: it may never end.
      if (shortMs < 1) continue;
      const quarter = measure(target, lengthen(seed, fullLength / 4));
      const input = lengthen(seed, quarter > 2000 ? fullLength / 4 : fullLength);
      const ms = quarter > 2000 ? quarter : Math.min(measure(target, input), measure(target, input));
      if (ms > (best?.ms ?? 0)) worst.set(target, { target, input, ms });
    }
  }
  return [...worst.values()].sort((a, b) => b.ms - a.ms);
}

const lengthOf = (input: FreezeInput): number => input.reduce((sum, [part, count]) => sum + part.length * count, 0);

function lengthen(input: FreezeInput, length: number): FreezeInput {
  const factor = length / Math.max(1, lengthOf(input));
  return input.map(([part, count]) => [part, count === 1 ? 1 : Math.max(1, Math.floor(count * factor))]);
}

const shorten = (input: FreezeInput): FreezeInput => lengthen(input, shortLength);
