// A real vLLM on the CPU with the real model: exact (float32), with a small context, as users start it or with its extra routes.

import { EngineProcess } from './engine-process.ts';
import { hasModel, hasVllm, modelFolder, modelName, vllmPython } from './world-cache.ts';

export const contextTokens = 2048;

interface VllmOptions {
  /** `--enable-scale-out`: without it /inference/v1/generate is 403, which is what most users have. */
  readonly scaleOut?: boolean;
  /** `VLLM_SERVER_DEV_MODE=1`: the routes for pausing and for changing weights. */
  readonly devMode?: boolean;
  /** vLLM's own default. */
  readonly rawLogprobs?: boolean;
  readonly args?: readonly string[];
  /** A free one by default. */
  readonly port?: number;
}

/** Why tests with it are skipped; false where they are not. */
export function skipWithoutVllm(): string | false {
  return !(hasVllm() && hasModel()) && 'there is no vLLM; npm run test:world or scripts/install-vllm.sh gets one';
}

export async function openVllm(options: VllmOptions = {}): Promise<EngineProcess> {
  const { scaleOut = false, devMode = false, rawLogprobs = false, args = [], port: given } = options;
  const engine = await EngineProcess.open({
    name: 'vLLM',
    program: vllmPython(),
    args: (port) => [
      ...['-m', 'vllm.entrypoints.openai.api_server', '--host', '127.0.0.1', '--port', `${port}`],
      ...['--model', modelFolder(), '--served-model-name', modelName, '--dtype', 'float32', '--max-model-len', `${contextTokens}`],
      ...['--max-num-seqs', '16', '--enable-prompt-tokens-details', '--enforce-eager'],
      ...(rawLogprobs ? [] : ['--logprobs-mode', 'processed_logprobs']),
      ...(scaleOut ? ['--enable-scale-out'] : []),
      ...args,
    ],
    env: {
      VLLM_CPU_KVCACHE_SPACE: '1',
      VLLM_CPU_OMP_THREADS_BIND: 'nobind',
      VLLM_NO_USAGE_STATS: '1',
      VLLM_LOGGING_LEVEL: 'INFO',
      HF_HUB_OFFLINE: '1',
      ...(devMode ? { VLLM_SERVER_DEV_MODE: '1' } : {}),
    },
    port: given,
    startMs: 600_000,
  });
  await sampleOnce(engine);
  return engine;
}

/** The first token compiles what it needs, which takes up to a minute on a busy machine. */
async function sampleOnce({ url }: EngineProcess): Promise<void> {
  const body = JSON.stringify({ model: modelName, prompt: [1], max_tokens: 1, logprobs: 1 });
  const headers = { 'content-type': 'application/json' };
  const reply = await fetch(`${url}/v1/completions`, { method: 'POST', headers, body });
  if (!reply.ok) throw new Error(`vLLM answered ${reply.status} to its first request: ${await reply.text()}`);
}
