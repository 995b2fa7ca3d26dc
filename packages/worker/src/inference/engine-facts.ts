// How a call was sampled, as every sampled segment records it: the engine behind its backend, and its parameters.

import { findUnseen, logprobsOf } from '@millrace/engines';
import { definedOf, type EngineFacts, type Sampling } from '@millrace/protocol';
import type { PoolEntry } from './pool/lease.ts';

/** Of the server that was proven to answer, where it is watched. */
export function toEngineFacts({ record, watch }: Pick<PoolEntry, 'record' | 'watch'>, sampling: Sampling): EngineFacts {
  const probe = watch?.known ?? record.probe;
  const known = { ...record, ...definedOf({ probe }) };
  return {
    engine: probe?.engine ?? null,
    engine_version: probe?.version ?? null,
    engine_model: probe?.model ?? null,
    dialect: record.dialect,
    logprobs_mode: logprobsOf(known),
    generation: probe?.generation ?? 1,
    ...definedOf({ logprobs_without: findUnseen(known, sampling) }),
    sampling: { ...sampling },
  };
}
