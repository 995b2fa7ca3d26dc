// vLLM as a backend: token ids in, token ids and logprobs out, over /inference/v1/generate or /v1/completions.

import { RolloutError } from '@millrace/protocol';
import type { Dispatcher } from 'undici';
import { type Log, silentLog } from '../base/log.ts';
import type { Pace } from '../base/pace.ts';
import type { Backend, BackendRecord, GenerateRequest, Generation } from './backend.ts';
import { post, type Reply } from './http-post.ts';
import { completionsRoute, generateRoute, maxReplyBytes, type Route } from './vllm-wire.ts';

export interface VllmOptions {
  /** Holds the connections; whoever made it closes it. */
  readonly dispatcher?: Dispatcher;
  readonly log?: Log;
  /** Taken before a reply is read: many come at once. */
  readonly pace?: Pace;
}

export function openVllmBackend(record: BackendRecord, { dispatcher, log = silentLog, pace }: VllmOptions = {}): Backend {
  const base = record.url.replace(/\/+$/, '');
  let hasGenerate = record.dialect === 'vllm';

  const send = async (route: Route, request: GenerateRequest): Promise<Reply> => {
    const { head, tail } = route.around(request, record.model);
    const reply = await post({
      url: `${base}${route.path}`,
      headers: toHeaders(record, request),
      body: [Buffer.from(head), request.promptJson, Buffer.from(tail)],
      maxReplyBytes: maxReplyBytes(request),
      signal: request.signal,
      ...(dispatcher ? { dispatcher } : {}),
    });
    await pace?.turn();
    return reply;
  };

  return {
    id: record.id,
    policyVersion: record.policyVersion,
    async generate(request): Promise<Generation> {
      if (hasGenerate) {
        const reply = await send(generateRoute, request);
        if (reply.status !== 404 && reply.status !== 405) return toGeneration(generateRoute, reply, request);
      }
      const reply = await send(completionsRoute, request);
      const generation = toGeneration(completionsRoute, reply, request);
      // Remembered only once the other route has answered: an unknown model is a 404 on both.
      if (hasGenerate) log.info('backend-without-generate', { backend: record.id });
      hasGenerate = false;
      return generation;
    },
  };
}

function toHeaders({ apiKey }: BackendRecord, { sessionId, requestId }: GenerateRequest): Record<string, string> {
  return { 'x-session-id': sessionId, 'x-request-id': requestId, ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }) };
}

function toGeneration(route: Route, { status, text }: Reply, request: GenerateRequest): Generation {
  if (status === 200) return route.parse(text, request);
  const message = `${route.path} answered ${status}: ${text.slice(0, 500)}`;
  if (status === 408 || status === 429 || status >= 500) throw new RolloutError('backend-failed', message);
  // The server's context is smaller than the rollout's limit: no retry helps, and the details let a caller tell it apart.
  const details = /context length|max_model_len/i.test(text) ? { details: { reason: 'context-length' } } : {};
  throw new RolloutError('backend-refused', message, details);
}
