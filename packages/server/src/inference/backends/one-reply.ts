// llama.cpp's server as a backend: token ids in, token ids and logprobs out, over /completion.

import type { Backend, BackendRecord } from './backend.ts';
import { type HttpBackendOptions, openSend, readGeneration } from './http-backend.ts';
import { llamacppRoute } from './llamacpp-wire.ts';
import { logprobsOf } from './logprobs.ts';

export function openLlamacppBackend(record: BackendRecord, options: HttpBackendOptions): Backend {
  const send = openSend(record, options);
  return {
    id: record.id,
    policyVersion: record.policyVersion,
    logprobs: logprobsOf(record),
    generate: async (request) => await readGeneration(llamacppRoute, await send(llamacppRoute, request), { request, pace: options.pace }),
  };
}
