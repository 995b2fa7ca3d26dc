// SGLang as a backend: token ids in, token ids and logprobs out, over /generate.

import type { Backend, BackendRecord, Generation } from './backend.ts';
import { type HttpBackendOptions, openSend, readGeneration } from './http-backend.ts';
import { logprobsOf } from './logprobs.ts';
import { sglangRoute } from './sglang-wire.ts';

export function openSglangBackend(record: BackendRecord, options: HttpBackendOptions = {}): Backend {
  const send = openSend(record, options);
  let told: number | undefined;
  return {
    id: record.id,
    policyVersion: record.policyVersion,
    logprobs: logprobsOf(record),
    async generate(request): Promise<Generation> {
      const before = told;
      const generation = readGeneration(sglangRoute, await send(sglangRoute, request), request);
      const { policyVersions } = generation;
      if (!policyVersions) return generation;
      const { last } = policyVersions;
      told = last;
      // A reply tells the weights at its end, a stream also those at its start. The ones at the start of a reply were at
      // least those of the last reply before it.
      const first = request.onTokens ? policyVersions.first : (before ?? last);
      return { ...generation, policyVersions: { first: Math.min(first, last), last } };
    },
  };
}
