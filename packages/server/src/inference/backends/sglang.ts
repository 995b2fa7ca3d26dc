// SGLang as a backend: token ids in, token ids and logprobs out, over /generate.

import { systemClock } from '../../base/clock.ts';
import type { Backend, BackendRecord, GenerateRequest, Generation } from './backend.ts';
import { type HttpBackendOptions, openControl, openSend, readGeneration } from './http-backend.ts';
import { logprobsOf } from './logprobs.ts';
import { sglangRoute } from './sglang-wire.ts';

/** A server that was asked to abort answers at once; one that has not in this time will not. */
const abortMs = 5_000;

export function openSglangBackend(record: BackendRecord, options: HttpBackendOptions = {}): Backend {
  const send = openSend(record, options);
  const control = openControl(record, options);
  let told: number | undefined;
  const generate = async (request: GenerateRequest): Promise<Generation> => {
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
  };
  return {
    id: record.id,
    policyVersion: record.policyVersion,
    logprobs: logprobsOf(record),
    generate: (request) => (request.cut && !request.onTokens ? cutByAbort(generate, request, control) : generate(request)),
  };
}

/**
 * A stream of SGLang repeats all tokens with each new one, so a turn's bytes grow with the square of its length. Here the server is
 * asked to abort instead, and answers the generation itself with what it has; only when it does not is the connection closed.
 */
async function cutByAbort(
  generate: (request: GenerateRequest) => Promise<Generation>,
  { cut, ...request }: GenerateRequest,
  control: ReturnType<typeof openControl>,
): Promise<Generation> {
  const lost = new AbortController();
  let stopTimer = () => {};
  const ask = () => {
    stopTimer = systemClock.after(abortMs, () => lost.abort());
    const { requestId: rid, signal } = request;
    control('/abort_request', { rid }, { signal: AbortSignal.any([signal, lost.signal]) }).catch(() => lost.abort());
  };
  if (cut?.aborted) ask();
  cut?.addEventListener('abort', ask, { once: true });
  try {
    return await generate({ ...request, cut: lost.signal });
  } finally {
    stopTimer();
    cut?.removeEventListener('abort', ask);
  }
}
