// What all adapters share: a request is sent along a route with its routing headers, and the reply becomes a generation or
// the error that its status stands for.

import { definedOf, RolloutError } from '@millrace/protocol';
import type { Dispatcher } from 'undici';
import { z } from 'zod';
import { type Clock, systemClock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Pace } from '../../base/pace.ts';
import type { BackendProbe, BackendRecord, GenerateRequest, Generation } from './backend.ts';
import { toLengthDetails } from './context-length.ts';
import { openEventReader } from './event-stream.ts';
import { post, type Reply } from './http-post.ts';
import { findLogprobsDoubt, logprobsOf } from './logprobs.ts';
import { ignoreTokens, type TokenRoute, type TokenStream, toBody, watchStream } from './wire.ts';

export interface HttpBackendOptions {
  readonly log: Log;
  /** Replies are read at its pace: hundreds may arrive at the same moment. */
  readonly pace: Pace;
  /** Holds the connections. The caller closes it. */
  readonly dispatcher?: Dispatcher;
  /** A call fails if the server sends nothing for this long. */
  readonly stallMs?: number;
  readonly clock?: Clock;
  /** Receives what a call found out about the server. */
  readonly onProbe?: (probe: BackendProbe) => void;
}

export type Send = (route: TokenRoute, request: GenerateRequest) => Promise<Answer>;

/** A reply, with its generation if it was streamed or cut. */
export type Answer = Reply & { readonly generation?: Generation };

/** Sends the server a command other than a generation. The content of the reply is ignored; a failure is thrown. */
export function openControl(record: BackendRecord, { dispatcher }: HttpBackendOptions) {
  const base = toBase(record);
  return async (path: string, body: Record<string, unknown>, { signal }: { readonly signal: AbortSignal }): Promise<void> => {
    await post({
      url: `${base}${path}`,
      headers: toAuthorization(record),
      body: [Buffer.from(JSON.stringify(body))],
      maxReplyBytes: 1 << 16,
      signal,
      dispatcher,
    });
  };
}

/** Also warns, once each, of the ways in which this backend's logprobs do not match what a request asks for. */
export function openSend(record: BackendRecord, options: HttpBackendOptions): Send {
  const { dispatcher, log, pace, stallMs } = options;
  const base = toBase(record);
  const warned = new Set<string>();
  return async (route, request) => {
    const doubt = findLogprobsDoubt(record, request.sampling);
    if (doubt !== undefined && !warned.has(doubt)) {
      warned.add(doubt);
      log.warn('backend-logprobs-doubtful', { backend: record.id, logprobs: logprobsOf(record), doubt });
    }
    const stream = request.onTokens ? route.openStream?.(request) : undefined;
    const reader = stream && openStreamReader(stream, { request, path: route.path }, options);
    try {
      const reply = await post({
        url: `${base}${route.path}`,
        headers: toHeaders(record, request),
        body: toBody(route, request, record.model),
        maxReplyBytes: maxReplyBytes(request),
        signal: request.cut ? AbortSignal.any([request.signal, request.cut]) : request.signal,
        dispatcher,
        stallMs,
        onChunk: reader?.onChunk,
      });
      await pace.turn();
      return reader && reply.isStream ? { ...reply, generation: reader.end(false) } : reply;
    } catch (error) {
      request.signal.throwIfAborted();
      if (!request.cut?.aborted) throw error;
      return { status: 200, text: '', generation: reader?.end(true) ?? nothing };
    }
  };
}

/** How often the tokens of a running stream are counted. */
const progressMs = 1000;

/**
 * A stream whose tokens are ignored as they arrive is parsed at its end and, for the progress, once a second, always at the
 * pace of all replies: parsing hundreds of streams event by event would hold up the event loop.
 */
function openStreamReader(
  stream: TokenStream,
  { request, path }: { readonly request: GenerateRequest; readonly path: string },
  { pace, clock = systemClock }: HttpBackendOptions,
) {
  const isWatched = request.onTokens !== ignoreTokens;
  const take = isWatched ? watchStream(stream, request) : (data: string) => stream.take(data);
  const read = openEventReader((data) => {
    throwErrorIn(path, data);
    take(data);
  });
  if (isWatched) return { onChunk: read, end: (isCut: boolean) => stream.end(isCut) };
  let chunks: Buffer[] = [];
  let readAt = clock.monotonic();
  let failure: { readonly error: unknown } | undefined;
  const readAll = () => {
    const waiting = Buffer.concat(chunks);
    chunks = [];
    if (!failure) read(waiting);
  };
  const readSome = () => {
    try {
      readAll();
      request.onProgress?.(stream.tokenIds.length);
    } catch (error) {
      failure = { error }; // thrown at the end of the call
    }
  };
  return {
    onChunk(chunk: Buffer): void {
      chunks.push(chunk);
      if (clock.monotonic() - readAt < progressMs) return;
      readAt = clock.monotonic();
      void pace.turn().then(readSome);
    },
    end(isCut: boolean): Generation {
      readAll();
      if (failure) throw failure.error;
      return stream.end(isCut);
    },
  };
}

const nothing: Generation = { tokenIds: new Int32Array(0), logprobs: new Float32Array(0), finishReason: 'abort' };

export function readGeneration(route: TokenRoute, answer: Answer, request: GenerateRequest): Generation {
  if (answer.generation) return answer.generation;
  if (answer.status !== 200) throw toReplyError(route.path, answer);
  throwErrorIn(route.path, answer.text);
  return route.parse(answer.text, request);
}

/** The error that a status stands for. */
function toReplyError(path: string, { status, text, retryAfterMs }: Reply): RolloutError {
  const message = `${path} answered ${status}: ${text.slice(0, 500)}`;
  switch (status) {
    case 408:
    case 429:
    case 503:
      return new RolloutError('backend-failed', message, {
        details: { reason: 'busy', status, ...definedOf({ retry_after_ms: retryAfterMs }) },
      });
    // The key, the address or the name of the model is wrong, not the request: every call would fail here.
    case 401:
    case 403:
    case 404:
    case 405:
      return new RolloutError('backend-failed', message, { details: { status } });
  }
  if (status >= 500) return new RolloutError('backend-failed', message, { details: { status } });
  const unknown = findUnknownToken(text);
  if (unknown !== undefined)
    return new RolloutError('backend-refused', `${unknown}: the service's tokenizer is not the model's (${message})`);
  // The server's context is smaller than the rollout's limit. The details let the caller recognize it.
  return new RolloutError('backend-refused', message, definedOf({ details: toLengthDetails(text) }));
}

/** vLLM names the id; llama.cpp and SGLang do not. */
function findUnknownToken(text: string): string | undefined {
  const [, id] = /token id (\d{1,10}) is out of vocabulary/i.exec(text) ?? [];
  if (id !== undefined) return `token id ${id} is out of the model's vocabulary`;
  return /prompt contains invalid tokens|greater than the vocab size/i.test(text)
    ? "a token id is out of the model's vocabulary"
    : undefined;
}

/**
 * Servers check a streamed request after they have sent its 200, and write an error as an event. SGLang's has no code: it is a
 * request that failed its checks.
 */
function throwErrorIn(path: string, text: string): void {
  if (!/^\s*\{\s*"error"/.test(text)) return;
  const { data } = errorEvent.safeParse(parseJson(text));
  if (data) throw toReplyError(path, { status: data.error.code ?? 400, text });
}

const errorEvent = z.looseObject({ error: z.looseObject({ code: z.coerce.number().int().min(400).max(599).optional().catch(undefined) }) });

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // truncated: the parser of the reply reports it
  }
}

/** A generous bound on the longest valid reply. Some servers echo the prompt as text. */
function maxReplyBytes({ promptTokens, maxTokens, sampling }: GenerateRequest): number {
  const experts = sampling.routed_experts ? 8192 * (promptTokens + maxTokens) : 0;
  // vLLM sends masks with every reply if it was started to, and an engine limits them to a few thousand ids.
  const masks = 12 * Math.min(sampling.top_k, 8192) * maxTokens;
  return (1 << 20) + 64 * promptTokens + 1024 * maxTokens + experts + masks;
}

/** The session is sent under every name that a router in front of the servers may look for. */
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

function toBase({ url }: BackendRecord): string {
  return url.replace(/\/+$/, '');
}
