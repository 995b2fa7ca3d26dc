// Where the second test tier keeps what it installs: outside the clone, filled by scripts/install-vllm.sh.

import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** As pinned in scripts/install-vllm.sh. */
export const vllmVersion = '0.32.0';
/** The model's name in every request. */
export const modelName = 'smollm2';

/** The same rule as in scripts/install-vllm.sh. */
export function worldCacheFolder(): string {
  const { MILLRACE_WORLD_CACHE, XDG_CACHE_HOME } = process.env;
  return MILLRACE_WORLD_CACHE || join(XDG_CACHE_HOME || join(homedir(), '.cache'), 'millrace', 'world');
}

export function vllmPython(): string {
  return join(worldCacheFolder(), `vllm-${vllmVersion}`, 'bin', 'python');
}

/** The folder that vLLM and our tokenizer load. */
export function modelFolder(): string {
  return join(worldCacheFolder(), 'smollm2-135m-instruct', 'hf');
}

/** The same weights for llama-server. */
export function ggufPath(): string {
  return join(worldCacheFolder(), 'smollm2-135m-instruct', 'model.gguf');
}

export function hasModel(): boolean {
  return existsSync(join(modelFolder(), '.complete')) && hasWeights();
}

export function hasWeights(): boolean {
  return existsSync(ggufPath());
}

export function hasVllm(): boolean {
  return existsSync(join(worldCacheFolder(), `vllm-${vllmVersion}`, '.complete'));
}
