// The simulated workloads for batches: a stream of tasks, half of them with equal rewards for all siblings, and long-tailed
// durations. The outcome of each sibling is a function of the seed, so every strategy sees the same stream.

import type { Course } from '@millrace/testkit';

export const groupSize = 8;

export interface World {
  readonly name: string;
  /** Rollouts that run concurrently. */
  readonly slots: number;
  readonly seed: number;
  readonly tail: 'lognormal' | 'pareto';
}

/** The course of sibling `n` of task `index`. */
export function courseOf({ seed, tail }: World, index: number, n: number): Course {
  const [a, b, c] = [hash(seed, index, n, 1), hash(seed, index, n, 2), hash(seed, index, n, 3)];
  const seconds = tail === 'lognormal' ? 20 * Math.exp(0.9 * gaussian(a, b)) : Math.min(600, 12 * (1 - a) ** (-1 / 1.6));
  const solves = isUniform(seed, index) ? hash(seed, index, 0, 5) < 0.5 : c < 0.15 + 0.7 * hash(seed, index, 0, 6);
  return { seconds, tokens: Math.ceil(seconds * 50), reward: solves ? 1 : 0 };
}

function isUniform(seed: number, index: number): boolean {
  return hash(seed, index, 0, 4) < 0.5;
}

interface TaskCourse {
  readonly siblings: readonly Course[];
  readonly informative: boolean;
}

export function taskOf(world: World, index: number): TaskCourse {
  const siblings = Array.from({ length: groupSize }, (_, n) => courseOf(world, index, n));
  return { siblings, informative: new Set(siblings.map(({ reward }) => reward)).size > 1 };
}

function gaussian(a: number, b: number): number {
  return Math.sqrt(-2 * Math.log(1 - a)) * Math.cos(2 * Math.PI * b);
}

/** From 0 to 1. */
function hash(...parts: readonly number[]): number {
  let state = 0x811c9dc5;
  for (const part of parts) {
    state = Math.imul(state ^ part, 0x01000193) + 0x9e3779b9;
    state = Math.imul(state ^ (state >>> 15), 0x85ebca6b);
    state ^= state >>> 13;
  }
  state = Math.imul(state, 0xc2b2ae35);
  return ((state ^ (state >>> 16)) >>> 0) / 2 ** 32;
}
