// SGLang as a backend: token ids in, token ids and logprobs out, over /generate.

import { systemClock } from '../../base/clock.ts';
import type { Backend, BackendRecord, GenerateRequest, Generation } from './backend.ts';
import { type HttpBackendOptions, openControl, openSend, readGeneration } from './http-backend.ts';
import { logprobsOf } from './logprobs.ts';
import { sglangRoute } from './sglang-wire.ts';

/** A server answers an abort at once. After this long it is not expected to answer any more. */
const abortMs = 5_000;

export function openSglangBackend(record: BackendRecord, options: HttpBackendOptions): Backend {
  const send = openSend(record, options);
  const control = openControl(record, options);
  let lastVersion: number | undefined;
  const generate = async (request: GenerateRequest): Promise<Generation> => {
    const before = lastVersion;
    const generation = readGeneration(sglangRoute, await send(sglangRoute, request), request);
    const { policyVersions } = generation;
    if (!policyVersions) return generation;
    const { last } = policyVersions;
    lastVersion = last;
    // A stream reports the weights at its start and its end, a reply only those at its end. At its start they were at least
    // those of the reply before it.
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
 * A stream of SGLang repeats all tokens in each event, so its bytes grow with the square of a turn's length. Instead, the server is
 * asked to abort, and returns the partial generation as the reply to the call. The connection is closed only if it does not.
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
