// What all adapters share: a request sent along a route with its routing headers, and an answer told apart by its status.

import { RolloutError } from '@millrace/protocol';
import type { Dispatcher } from 'undici';
import { type Log, silentLog } from '../../base/log.ts';
import type { Pace } from '../../base/pace.ts';
import type { BackendRecord, GenerateRequest, Generation } from './backend.ts';
import { openEventSplit, post, type Reply } from './http-post.ts';
import { findLogprobsDoubt, logprobsOf } from './logprobs.ts';
import { type Route, type TokenStream, toBody, unwatched, watchStream } from './wire.ts';

export interface HttpBackendOptions {
  /** Holds the connections; whoever made it closes it. */
  readonly dispatcher?: Dispatcher;
  readonly log?: Log;
  /** Taken before a reply is read: many come at once. */
  readonly pace?: Pace;
  /** A server from which nothing at all came for so long has failed. */
  readonly stallMs?: number;
}

export type Send = (route: Route, request: GenerateRequest) => Promise<Answer>;

/** A reply, or what became of it where it was streamed or cut off. */
export type Answer = Reply & { readonly generation?: Generation };

/** Tells the server something beside a generation. What it answers matters to nobody; what fails is thrown. */
export function openControl(record: BackendRecord, { dispatcher }: HttpBackendOptions) {
  const base = record.url.replace(/\/+$/, '');
  return async (path: string, body: Record<string, unknown>, { signal }: { readonly signal: AbortSignal }): Promise<void> => {
    await post({
      url: `${base}${path}`,
      headers: toAuthorization(record),
      body: [Buffer.from(JSON.stringify(body))],
      maxReplyBytes: 1 << 16,
      signal,
      ...(dispatcher ? { dispatcher } : {}),
    });
  };
}

/** Warns once for each way in which this backend's logprobs do not fit a request. */
export function openSend(record: BackendRecord, { dispatcher, log = silentLog, pace, stallMs }: HttpBackendOptions): Send {
  const base = record.url.replace(/\/+$/, '');
  const told = new Set<string>();
  return async (route, request) => {
    const doubt = findLogprobsDoubt(record, request.sampling);
    if (doubt !== undefined && !told.has(doubt)) {
      told.add(doubt);
      log.warn('backend-logprobs-doubtful', { backend: record.id, logprobs: logprobsOf(record), doubt });
    }
    const stream = request.onTokens ? route.openStream?.(request) : undefined;
    const reading = stream && openReading(stream, request);
    const call = {
      url: `${base}${route.path}`,
      headers: toHeaders(record, request),
      body: toBody(route, request, record.model),
      maxReplyBytes: maxReplyBytes(request),
      signal: request.cut ? AbortSignal.any([request.signal, request.cut]) : request.signal,
      ...(dispatcher ? { dispatcher } : {}),
      ...(stallMs === undefined ? {} : { stallMs }),
      ...(reading ? { onChunk: reading.onChunk } : {}),
    };
    try {
      const reply = await post(call);
      await pace?.turn();
      return reading && reply.isStream ? { ...reply, generation: reading.end(false) } : reply;
    } catch (error) {
      request.signal.throwIfAborted();
      if (!request.cut?.aborted) throw error;
      return { status: 200, text: '', generation: reading?.end(true) ?? nothing };
    }
  };
}

/** What nobody watches is read at its end, in the pace of all replies: hundreds of streams bring their events at the same time. */
function openReading(stream: TokenStream, request: GenerateRequest) {
  if (request.onTokens !== unwatched)
    return { onChunk: openEventSplit(watchStream(stream, request)), end: (isCut: boolean) => stream.end(isCut) };
  const chunks: Buffer[] = [];
  return {
    onChunk: (chunk: Buffer) => void chunks.push(chunk),
    end(isCut: boolean): Generation {
      openEventSplit((data) => stream.take(data))(Buffer.concat(chunks.splice(0)));
      return stream.end(isCut);
    },
  };
}

const nothing: Generation = { tokenIds: new Int32Array(0), logprobs: new Float32Array(0), finishReason: 'abort' };

export function readGeneration(route: Route, { status, text, generation, retryAfterMs }: Answer, request: GenerateRequest): Generation {
  if (generation) return generation;
  if (status === 200) return route.parse(text, request);
  const message = `${route.path} answered ${status}: ${text.slice(0, 500)}`;
  if (status === 408 || status === 429 || status >= 500) {
    const isBusy = status === 408 || status === 429 || (status === 503 && retryAfterMs !== undefined);
    const details = isBusy ? { reason: 'busy', ...(retryAfterMs === undefined ? {} : { retry_after_ms: retryAfterMs }) } : { status };
    throw new RolloutError('backend-failed', message, { details });
  }
  // The server's context is smaller than the rollout's limit: no retry helps, and the details let a caller tell it apart.
  const details = /context (length|size)|max_model_len/i.test(text) ? { details: { reason: 'context-length' } } : {};
  throw new RolloutError('backend-refused', message, details);
}

/** A generous bound: what the longest honest reply to this request could take. Some servers echo the prompt as text. */
function maxReplyBytes({ promptTokens, maxTokens, sampling }: GenerateRequest): number {
  const experts = sampling.routed_experts ? 8192 * (promptTokens + maxTokens) : 0;
  return (1 << 20) + 64 * promptTokens + 1024 * maxTokens + experts;
}

/** The session goes out under every name that a router in front of the servers may look for. */
function toHeaders(record: BackendRecord, { sessionId, requestId }: GenerateRequest): Record<string, string> {
  return {
    'x-session-id': sessionId,
    'x-smg-routing-key': sessionId,
    'x-request-id': requestId,
    ...toAuthorization(record),
  };
}

function toAuthorization({ apiKey }: BackendRecord): Record<string, string> {
  return apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
}
