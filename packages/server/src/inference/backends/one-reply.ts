// A server with one token route that answers in one reply: llama.cpp, the servers that trainers start themselves, and chat-only servers.

import type { Backend, BackendRecord } from './backend.ts';
import { type HttpBackendOptions, openSend, readGeneration } from './http-backend.ts';
import { logprobsOf } from './logprobs.ts';
import type { TokenRoute } from './wire.ts';

export function openOneReplyBackend(route: TokenRoute, record: BackendRecord, options: HttpBackendOptions): Backend {
  const send = openSend(record, options);
  return {
    id: record.id,
    policyVersion: record.policyVersion,
    logprobs: logprobsOf(record),
    generate: async (request) => await readGeneration(route, await send(route, request), { request, pace: options.pace }),
  };
}
