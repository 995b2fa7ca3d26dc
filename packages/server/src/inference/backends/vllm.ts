// vLLM as a backend: token ids in, token ids and logprobs out, over /inference/v1/generate or /v1/completions.

import type { Backend, BackendRecord, Generation } from './backend.ts';
import { type HttpBackendOptions, openSend, readGeneration } from './http-backend.ts';
import type { Reply } from './http-post.ts';
import { logprobsOf } from './logprobs.ts';
import { completionsRoute, generateRoute } from './vllm-wire.ts';
import { ignoreTokens } from './wire.ts';

export function openVllmBackend(record: BackendRecord, options: HttpBackendOptions): Backend {
  const { log, onProbe } = options;
  const send = openSend(record, options);
  let hasGenerate = record.dialect === 'vllm' && record.probe?.route !== completionsRoute.path;
  return {
    id: record.id,
    policyVersion: record.policyVersion,
    logprobs: logprobsOf(record),
    async generate(asked): Promise<Generation> {
      // vLLM returns a partial generation only as a stream, so every call that can be cut is streamed.
      const request = asked.cut && !asked.onTokens ? { ...asked, onTokens: ignoreTokens } : asked;
      const refusal = hasGenerate ? await send(generateRoute, request) : undefined;
      if (refusal && !isWithoutRoute(refusal.status)) return readGeneration(generateRoute, refusal, request);
      const generation = readGeneration(completionsRoute, await send(completionsRoute, request), request);
      // Remembered only after the other route has worked: an unknown model is a 404 on both.
      if (refusal && hasGenerate) {
        hasGenerate = false;
        const reason = describeRefusal(generateRoute.path, refusal);
        log.info('backend-without-generate', { backend: record.id, route: completionsRoute.path, reason });
        onProbe?.({ route: completionsRoute.path, routeReason: reason });
      }
      return generation;
    },
  };
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
