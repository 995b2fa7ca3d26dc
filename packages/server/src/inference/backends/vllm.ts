// vLLM as a backend: token ids in, token ids and logprobs out, over /inference/v1/generate or /v1/completions.

import type { Backend, BackendRecord, Generation } from './backend.ts';
import { type HttpBackendOptions, openSend, readGeneration } from './http-backend.ts';
import { logprobsOf } from './logprobs.ts';
import { completionsRoute, generateRoute } from './vllm-wire.ts';
import { ignoreTokens } from './wire.ts';

export function openVllmBackend(record: BackendRecord, options: HttpBackendOptions): Backend {
  const { log } = options;
  const send = openSend(record, options);
  let hasGenerate = record.dialect === 'vllm';
  return {
    id: record.id,
    policyVersion: record.policyVersion,
    logprobs: logprobsOf(record),
    async generate(asked): Promise<Generation> {
      // vLLM returns a partial generation only as a stream, so every call that can be cut is streamed.
      const request = asked.cut && !asked.onTokens ? { ...asked, onTokens: ignoreTokens } : asked;
      if (hasGenerate) {
        const reply = await send(generateRoute, request);
        if (reply.status !== 404 && reply.status !== 405) return readGeneration(generateRoute, reply, request);
      }
      const reply = await send(completionsRoute, request);
      const generation = readGeneration(completionsRoute, reply, request);
      // Remembered only after the other route has worked: an unknown model is a 404 on both.
      if (hasGenerate) log.info('backend-without-generate', { backend: record.id });
      hasGenerate = false;
      return generation;
    },
  };
}
