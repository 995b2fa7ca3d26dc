// A real llama-server with the same weights that vLLM gets.

import { findLlamaServer } from '@millrace/testkit';
import { EngineProcess } from './engine-process.ts';
import { ggufPath, hasModel, modelName } from './world-cache.ts';

export const llamaContextTokens = 2048;

interface LlamaOptions {
  /** Requests that run at once. */
  readonly slots?: number;
  readonly args?: readonly string[];
}

/** Why tests with it are skipped; false where they are not. */
export function skipWithoutLlama(): string | false {
  const hasAll = findLlamaServer() !== undefined && hasModel();
  return !hasAll && 'there is no llama-server with the model; npm run test:world gets both';
}

export async function openLlama({ slots = 4, args = [] }: LlamaOptions = {}): Promise<EngineProcess> {
  return await EngineProcess.open({
    name: 'llama-server',
    program: findLlamaServer() ?? 'llama-server',
    args: (port) => [
      ...['--host', '127.0.0.1', '--port', `${port}`, '--model', ggufPath(), '--alias', modelName],
      ...['--parallel', `${slots}`, '--ctx-size', `${slots * llamaContextTokens}`, '--threads', '2', '--threads-batch', '2'],
      ...['--no-warmup', '--no-ui', '--cache-ram', '0', '--log-colors', 'off', ...args],
    ],
    startMs: 120_000,
  });
}
