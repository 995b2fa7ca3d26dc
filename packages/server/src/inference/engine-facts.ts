// What is known about the engine behind a backend, as every sampled segment records it.

import type { EngineFacts } from '@millrace/protocol';
import type { BackendRecord } from './backends/backend.ts';
import { logprobsOf } from './backends/logprobs.ts';

export function toEngineFacts(record: BackendRecord): EngineFacts {
  const { dialect, probe } = record;
  return { engine: probe?.engine ?? null, engine_version: probe?.version ?? null, dialect, logprobs_mode: logprobsOf(record) };
}
