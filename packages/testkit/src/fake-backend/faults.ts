// The faults of a backend by name, and when they happen: by a script, or by chance from a seed so that a run can be repeated.

import { makeRandom } from '../models/random.ts';
import { outputFaults } from './engines/wire.ts';

/**
 * - http-500, http-429, http-400, context-length: an error reply
 * - reset: the connection breaks before the reply; cut: during it; hang: no reply at all; stuck: the start of a reply, then nothing
 * - garbage: not JSON; endless: a reply that is far too long; no-choices: an empty list
 * - misaligned: one logprob missing; no-logprobs: all missing; floor-logprobs: -9999; logits: above 0; bad-ids: not integers
 * - too-many: more tokens than requested; wrong-prompt: a prompt of another length
 * - abort: the server aborts the generation; lateMs: a good reply, this much later
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

/** Called once for each generation; `index` counts them from 0. */
export type Faults = (index: number) => Fault | undefined;

/** The first requests get these faults, all later ones none. */
export function scriptedFaults(script: readonly (Fault | undefined)[]): Faults {
  return (index) => script[index];
}

export function randomFaults({ probability, kinds, seed = 1 }: { probability: number; kinds: readonly Fault[]; seed?: number }): Faults {
  const random = makeRandom(seed);
  return () => (random() < probability ? kinds[Math.floor(random() * kinds.length)] : undefined);
}

/** Milliseconds until a reply: most are near the median, and a few take many times as long. */
export function longTailLatency({ medianMs, sigma = 0.8, seed = 1 }: { medianMs: number; sigma?: number; seed?: number }): () => number {
  const random = makeRandom(seed);
  return () => medianMs * Math.exp(sigma * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()));
}
