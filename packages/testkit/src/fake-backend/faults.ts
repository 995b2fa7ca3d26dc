// What can go wrong with a backend, by name, and when: by a script or by chance, from a seed so that it can be seen again.

import { makeRandom } from '../models/random.ts';
import { outputFaults } from './wire.ts';

/**
 * - http-500, http-429, http-400, context-length: an error answer
 * - reset: the connection breaks before the answer; cut: in the middle of it; hang: nothing ever comes; stuck: its beginning, and then nothing
 * - garbage: not JSON; endless: a reply far too long; no-choices: an empty list
 * - misaligned: one logprob less than ids; no-logprobs: none; floor-logprobs: -9999; logits: above 0; bad-ids: not integers
 * - too-many: more tokens than asked for; wrong-prompt: it says that it saw another prompt
 * - abort: the server gave up; lateMs: a good answer, this much later
 */
export const faultKinds = [
  'http-500',
  'http-429',
  'http-400',
  'context-length',
  'reset',
  'cut',
  'hang',
  'stuck',
  'garbage',
  'endless',
  'no-choices',
  ...outputFaults,
] as const;
export type FaultKind = (typeof faultKinds)[number];
export type Fault = FaultKind | { readonly lateMs: number };

/** Asked once for each generation; `index` counts them from 0. */
export type Faults = (index: number) => Fault | undefined;

/** The first requests fare as listed, all later ones well. */
export function scriptedFaults(script: readonly (Fault | undefined)[]): Faults {
  return (index) => script[index];
}

export function randomFaults({ probability, kinds, seed = 1 }: { probability: number; kinds: readonly Fault[]; seed?: number }): Faults {
  const random = makeRandom(seed);
  return () => (random() < probability ? kinds[Math.floor(random() * kinds.length)] : undefined);
}

/** Milliseconds until an answer, where most are near the median and a few take many times as long. */
export function longTailLatency({ medianMs, sigma = 0.8, seed = 1 }: { medianMs: number; sigma?: number; seed?: number }): () => number {
  const random = makeRandom(seed);
  return () => medianMs * Math.exp(sigma * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()));
}
