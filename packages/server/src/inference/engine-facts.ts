// What is known about the engine behind a backend, as every sampled segment records it.

import type { EngineFacts } from '@millrace/protocol';
import { logprobsOf } from './backends/logprobs.ts';
import type { PoolEntry } from './pool/lease.ts';

/** Of the server that was proven to answer, where it is watched. */
export function toEngineFacts({ record, watch }: Pick<PoolEntry, 'record' | 'watch'>): EngineFacts {
  const { dialect } = record;
  const probe = watch?.known ?? record.probe;
  return {
    engine: probe?.engine ?? null,
    engine_version: probe?.version ?? null,
    engine_model: probe?.model ?? null,
    dialect,
    logprobs_mode: logprobsOf({ ...record, ...(probe ? { probe } : {}) }),
    generation: probe?.generation ?? 1,
  };
}
