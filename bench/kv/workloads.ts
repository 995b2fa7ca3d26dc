// The engine and the agents of the simulations: a 7B-shaped model on an H200 with 518,272 tokens of KV cache, as it was measured, and agents
// whose contexts grow from 8k to 32k tokens, or from 2k.

import type { EngineShape } from './engine.ts';
import type { Workload } from './simulation.ts';

/** The five costs were chosen so that the simulation is near what was measured (`measured` below). */
export const h200: EngineShape = {
  blockTokens: 16,
  blocks: 32_392,
  stepTokens: 8192,
  maxRunning: 512,
  cost: { step: 6e-3, token: 20e-6, pair: 0.8e-9, read: 12e-9, sample: 5e-5 },
};

const shortTools = { medianS: 1.5, sigma: 1, longestS: 20 };

export function longContexts(agents: number, tool: Workload['tool'] = shortTools): Workload {
  return { agents, startTokens: 8000, observedTokens: 1080, outputTokens: 120, turns: 20, isSpread: true, tool };
}

export function youngContexts(agents: number): Workload {
  return { agents, startTokens: 2000, observedTokens: 900, outputTokens: 100, turns: 30, isSpread: false, tool: shortTools };
}

/** Tools whose times spread as much, around another median. */
export function toolsOf(medianS: number): Workload['tool'] {
  return { medianS, sigma: 1, longestS: 15 * medianS };
}

/**
 * On an H200 with vLLM 0.25, one run each. That version counts a request that does not fit again in each step, so `hits` are those of all
 * lookups.
 */
export const measured: readonly {
  readonly workload: Workload;
  readonly cap?: number;
  readonly seconds: number;
  readonly tokensPerS: number;
  readonly hits: number;
}[] = [
  { workload: longContexts(24), seconds: 100, tokensPerS: 654, hits: 0.87 },
  { workload: longContexts(48), seconds: 100, tokensPerS: 173, hits: 0 },
  { workload: longContexts(96), seconds: 100, tokensPerS: 181, hits: 0.01 },
  { workload: longContexts(96), cap: 26, seconds: 100, tokensPerS: 336, hits: 0.31 },
  { workload: youngContexts(40), seconds: 90, tokensPerS: 726, hits: 0.49 },
  { workload: youngContexts(80), seconds: 90, tokensPerS: 851, hits: 0.31 },
  { workload: youngContexts(160), seconds: 90, tokensPerS: 986, hits: 0.12 },
  { workload: youngContexts(160), cap: 42, seconds: 90, tokensPerS: 733, hits: 0.49 },
  { workload: youngContexts(160), cap: 56, seconds: 90, tokensPerS: 770, hits: 0.4 },
];
