// Everything that is recorded: which engine is started how, and which cases go into which file.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type FakeBackendOptions, type Recording, type RecordingFile, recordingFile, recordingsFolder } from '@millrace/testkit';
import { z } from 'zod';
import type { Engine } from '../engines/engine-process.ts';
import { openLlama } from '../engines/llama.ts';
import { openSharedVllm } from '../engines/shared-engines.ts';
import { openVllm } from '../engines/vllm.ts';
import { vllmVersion } from '../engines/world-cache.ts';
import { llamaErrorCases, llamaGoodCases, llamaInfoCases, llamaShutdownCase } from './llama-cases.ts';
import {
  abortCases,
  type Case,
  crashCases,
  devCases,
  disconnectCases,
  errorCases,
  goodCases,
  infoCases,
  pauseCases,
  plainCases,
  queueCases,
  shutdownCases,
} from './vllm-cases.ts';

export interface RecordingSession {
  readonly name: string;
  readonly engine: RecordingFile['engine'];
  readonly started: string;
  open(): Promise<Engine>;
  /** A fake backend that was started in the same way. */
  readonly fake: Omit<FakeBackendOptions, 'policy'>;
  /** By the name of their file. */
  readonly files: Readonly<Record<string, readonly Case[]>>;
}

const both = <T>(cases: (route: 'generate' | 'completions') => readonly T[]) => [...cases('generate'), ...cases('completions')];

export const sessions: readonly RecordingSession[] = [
  {
    name: 'vLLM with its extra routes',
    engine: 'vllm',
    started: 'VLLM_SERVER_DEV_MODE=1 vllm serve --enable-scale-out --enable-prompt-tokens-details --logprobs-mode processed_logprobs',
    open: openSharedVllm,
    fake: { engine: 'vllm', devMode: true },
    files: {
      info: infoCases,
      generate: goodCases('generate'),
      'generate-errors': errorCases('generate'),
      completions: goodCases('completions'),
      'completions-errors': errorCases('completions'),
      abort: both((route) => [...abortCases(route, '/inference/v1/abort_requests'), ...abortCases(route, '/abort_requests')]),
      disconnect: both(disconnectCases),
      pause: both(pauseCases),
      dev: devCases,
    },
  },
  {
    name: 'vLLM as most users start it',
    engine: 'vllm',
    started: 'vllm serve',
    open: () => openVllm(),
    fake: { engine: 'vllm', withoutGenerate: 403 },
    files: { plain: plainCases, shutdown: shutdownCases },
  },
  {
    name: 'vLLM with room for two requests',
    engine: 'vllm',
    started: 'vllm serve --enable-scale-out --max-num-queued-reqs 2',
    open: () => openVllm({ scaleOut: true, args: ['--max-num-queued-reqs', '2'] }),
    fake: { engine: 'vllm', maxRequests: 2 },
    files: { 'queue-full': queueCases, crash: crashCases },
  },
  {
    name: 'llama-server',
    engine: 'llamacpp',
    started: 'llama-server --parallel 4 --ctx-size 8192',
    open: () => openLlama(),
    fake: { engine: 'llamacpp' },
    files: {
      info: llamaInfoCases,
      completion: llamaGoodCases,
      errors: llamaErrorCases,
      shutdown: [llamaShutdownCase],
    },
  },
];

export async function recordCases(engine: Engine, cases: readonly Case[]): Promise<Recording[]> {
  const recordings: Recording[] = [];
  for (const { name, says, run } of cases) recordings.push({ name, says, exchanges: [...(await run(engine))] });
  return recordings;
}

export async function readVersion({ engine }: RecordingSession, { url }: Engine): Promise<string> {
  if (engine === 'vllm') return vllmVersion;
  const { build_info: build } = z.object({ build_info: z.string() }).parse(await (await fetch(`${url}/props`)).json());
  return build.split(/[^\w.]/)[0] ?? build;
}

export function readStored({ engine }: RecordingSession, version: string, file: string): RecordingFile {
  return recordingFile.parse(JSON.parse(readFileSync(join(recordingsFolder(engine, version), `${file}.json`), 'utf8')));
}
