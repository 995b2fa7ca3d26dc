// SGLang as a backend: token ids in, token ids and logprobs out, over /generate.

import type { Backend, BackendRecord, GenerateRequest, Generation } from './backend.ts';
import { cutByAbort } from './calls/abort-call.ts';
import { type HttpBackendOptions, openControl, openSend, readGeneration } from './http-backend.ts';
import { logprobsOf } from './logprobs.ts';
import { sglangRoute } from './sglang-wire.ts';

export function openSglangBackend(record: BackendRecord, options: HttpBackendOptions): Backend {
  const { pace, clock } = options;
  const send = openSend(record, options);
  const control = openControl(record, options);
  let lastVersion: number | undefined;
  const generate = async (request: GenerateRequest): Promise<Generation> => {
    const before = lastVersion;
    const generation = await readGeneration(sglangRoute, await send(sglangRoute, request), { request, pace });
    const { policyVersions, versionSpans } = generation;
    if (!policyVersions) return generation;
    const { last } = policyVersions;
    lastVersion = last;
    if (versionSpans) return generation;
    // Older versions report no spans: a stream has the weights at its start and its end, a reply only those at its end. At its
    // start they were at least those of the reply before it.
    const first = request.onTokens ? policyVersions.first : (before ?? last);
    return { ...generation, policyVersions: { first: Math.min(first, last), last } };
  };
  return {
    id: record.id,
    policyVersion: record.policyVersion,
    logprobs: logprobsOf(record),
    /**
     * A stream of SGLang repeats all tokens in each event, so its bytes grow with the square of a turn's length. A call that can be
     * cut is not streamed: the reply to a request that was aborted has the tokens so far.
     */
    generate({ cut, ...request }) {
      if (!cut || request.onTokens) return generate({ ...request, ...(cut ? { cut } : {}) });
      const { requestId: rid, signal } = request;
      const ask = async (within: { readonly signal: AbortSignal }) => (await control('/abort_request', { rid }, within)) < 300;
      return cutByAbort((lost) => generate({ ...request, cut: lost }), { cut, signal, ask, clock });
    },
  };
}
