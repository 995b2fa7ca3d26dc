// The engine of the demo: a real model behind llama-server, or vLLM where only that is installed. Where neither is, it gets llama-server and
// the weights, which is the smaller of the two.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import type { Dialect } from '@millrace/protocol';
import { findLlamaServer } from '@millrace/testkit';
import type { Engine } from '../../world/engines/engine-process.ts';
import { writeTokenizer } from '../../world/engines/gguf-tokenizer.ts';
import { openLlama } from '../../world/engines/llama.ts';
import { openVllm } from '../../world/engines/vllm.ts';
import { ggufPath, hasModel, hasVllm, hasWeights, modelFolder, worldCacheFolder } from '../../world/engines/world-cache.ts';

export interface DemoEngine extends AsyncDisposable {
  readonly name: string;
  readonly url: string;
  readonly dialect: Dialect;
  /** The folder with the model's tokenizer. */
  readonly tokenizer: string;
}

/** `wanted` is `vllm`, `llama`, or absent for what is there. Throws where it cannot be had. */
export async function openDemoEngine(wanted: string | undefined, say: (line: string) => void): Promise<DemoEngine> {
  const isVllm = wanted === 'vllm' || (wanted === undefined && findLlamaServer() === undefined && hasVllm() && hasModel());
  if (isVllm) {
    if (!hasVllm() || !hasModel()) install('scripts/install-vllm.sh', say);
    say('Starting vLLM with SmolLM2-135M-Instruct on the CPU; this takes a minute …');
    return toDemo(await openVllm({ scaleOut: true }), { name: 'vLLM', dialect: 'vllm', tokenizer: modelFolder() });
  }
  if (findLlamaServer() === undefined) install('scripts/install-llama-server.sh', say);
  if (!hasWeights()) install('scripts/install-vllm.sh', say, '--weights-only');
  say('Starting llama-server with SmolLM2-135M-Instruct on the CPU …');
  const tokenizer = writeTokenizer(ggufPath(), join(worldCacheFolder(), 'smollm2-135m-instruct', 'tokenizer'));
  return toDemo(await openLlama({ slots: 8 }), { name: 'llama-server', dialect: 'llamacpp', tokenizer });
}

function toDemo(engine: Engine, rest: Pick<DemoEngine, 'name' | 'dialect' | 'tokenizer'>): DemoEngine {
  return { ...rest, url: engine.url, [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose]() };
}

function install(script: string, say: (line: string) => void, ...args: string[]): void {
  say(`Running ${script} …`);
  const { status } = spawnSync('bash', [script, ...args], { stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) throw new Error(`${script} failed; its lines above say why`);
}
