// The engines that the whole test run shares: scripts/world.ts starts them once and names their addresses in the environment. A test file
// that runs alone starts its own.

import { type Engine, shareEngine } from './engine-process.ts';
import { openLlama } from './llama.ts';
import { openVllm } from './vllm.ts';

export const sharedVariables = { vllm: 'MILLRACE_WORLD_VLLM', plain: 'MILLRACE_WORLD_PLAIN_VLLM', llama: 'MILLRACE_WORLD_LLAMA' } as const;

/** vLLM with both token routes and the routes for weights. */
export const openSharedVllm = (): Promise<Engine> => shareOr(sharedVariables.vllm, openFull);
export const openFull = (): Promise<Engine> => openVllm({ scaleOut: true, devMode: true });

/** vLLM as most users start it, without /inference/v1/generate; its queue has room for two. */
export const openPlainVllm = (): Promise<Engine> => shareOr(sharedVariables.plain, openPlain);
export const openPlain = (): Promise<Engine> => openVllm({ rawLogprobs: true, args: ['--max-num-queued-reqs', '2'] });

export const openSharedLlama = (): Promise<Engine> => shareOr(sharedVariables.llama, () => openLlama());

async function shareOr(variable: string, open: () => Promise<Engine>): Promise<Engine> {
  const url = process.env[variable];
  return url ? shareEngine(url) : await open();
}
