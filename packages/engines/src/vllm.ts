// vLLM as a backend: token ids in, token ids and logprobs out, over /inference/v1/generate or /v1/completions.

import type { Backend, BackendRecord, GenerateRequest, Generation } from './backend.ts';
import { cutByAbort } from './calls/abort-call.ts';
import { type Answer, type HttpBackendOptions, openControl, openSend, readGeneration } from './http-backend.ts';
import type { Reply } from './http-post.ts';
import { logprobsOf } from './logprobs.ts';
import { refuseFields } from './params/sampling-fields.ts';
import { completionsRoute, generateRoute } from './vllm-wire.ts';
import type { RouteRequest, TokenRoute } from './wire.ts';

/** Tokens in each event of a stream whose request can be aborted by its id. */
const streamInterval = 64;
/** Tokens in each event where only closing the connection aborts: a cut loses at most this many, less one. */
const cutInterval = 8;
const abortPath = '/inference/v1/abort_requests';

export function openVllmBackend(record: BackendRecord, options: HttpBackendOptions): Backend {
  const { log, onProbe, onDoubt, pace } = options;
  const call = openCall(record, options);
  let hasGenerate = record.dialect === 'vllm' && record.probe?.route !== completionsRoute.path;
  return {
    id: record.id,
    policyVersion: record.policyVersion,
    logprobs: logprobsOf(record),
    async generate(request): Promise<Generation> {
      if (isBefore(record.probe?.version, [0, 11]))
        refuseFields(request.sampling, `vLLM ${record.probe?.version}`, {
          structured_outputs: 'it ignores the field; 0.11 or later has it',
        });
      const refusal = hasGenerate ? await call(generateRoute, request) : undefined;
      if (refusal && !isWithoutRoute(refusal.status)) return await readGeneration(generateRoute, refusal, { request, pace });
      const generation = await readGeneration(completionsRoute, await call(completionsRoute, request), { request, pace });
      // Remembered only after the other route has worked: an unknown model is a 404 on both.
      if (refusal && hasGenerate) {
        hasGenerate = false;
        onDoubt?.();
        const reason = describeRefusal(generateRoute.path, refusal);
        log.info('backend-without-generate', { backend: record.id, route: completionsRoute.path, reason });
        onProbe?.({ route: completionsRoute.path, routeReason: reason });
      }
      return generation;
    },
  };
}

/**
 * A call that can be cut is streamed: its tokens are counted while it runs, and a cut that only closes the connection keeps those that
 * came. Where the server can abort a request by its id, it sends few events, and the rest of the tokens with the abort.
 */
function openCall(record: BackendRecord, options: HttpBackendOptions) {
  const send = openSend(record, options);
  const control = openControl(record, options);
  let hasAbort = true;
  return async (route: TokenRoute, { cut, ...asked }: GenerateRequest): Promise<Answer> => {
    if (!cut || asked.onTokens) return await send(route, { ...asked, ...(cut ? { cut } : {}) });
    // A stream of /v1/completions has no experts.
    const isPlain = route === completionsRoute && asked.sampling.routed_experts === true;
    const request: RouteRequest = isPlain ? asked : { ...asked, isCollected: true };
    if (!hasAbort || route === completionsRoute) return await send(route, { ...request, streamInterval: cutInterval, cut });
    let hasTokens = false;
    const onChunk = () => {
      hasTokens = true;
    };
    const ask = async (within: { readonly signal: AbortSignal }) => {
      // The first token is sent at once: without it there is nothing to keep, and the server may not know the request yet.
      if (!hasTokens) return false;
      const status = await control(abortPath, { request_ids: [`generate-tokens-${asked.requestId}`] }, within);
      hasAbort = hasAbort && !isWithoutRoute(status);
      return status < 300;
    };
    const { signal } = asked;
    return await cutByAbort((lost) => send(route, { ...request, streamInterval, onChunk, cut: lost }), {
      cut,
      signal,
      ask,
      clock: options.clock,
    });
  };
}

/** False for a version that is not known. */
function isBefore(version: string | undefined, [major, minor]: readonly [number, number]): boolean {
  const [, first, second] = /^v?(\d+)\.(\d+)/.exec(version ?? '') ?? [];
  if (first === undefined) return false;
  return Number(first) < major || (Number(first) === major && Number(second) < minor);
}

/** 403: vLLM has the route, but was started without --enable-scale-out. 404 and 405: an older version. */
export function isWithoutRoute(status: number): boolean {
  return status === 403 || status === 404 || status === 405;
}

/** With the server's own message, if its reply has one. */
export function describeRefusal(path: string, { status, text }: Pick<Reply, 'status' | 'text'>): string {
  const [, message = ''] = /"(?:message|detail)": ?"([^"]{1,300})/.exec(text) ?? [];
  return `${path} answered ${status}${message === '' ? '' : `: ${message}`}`;
}
