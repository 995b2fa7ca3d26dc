// What all adapters share: a request is sent along a route with its routing headers, and the reply becomes a generation or
// the error that its status stands for.

import type { Clock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import type { Pace } from '@millrace/base/pace';
import { definedOf, RolloutError, tryJson } from '@millrace/protocol';
import type { Dispatcher } from 'undici';
import { z } from 'zod';
import type { Backend, BackendProbe, BackendRecord, GenerateRequest, Generation } from './backend.ts';
import { readHealth } from './calls/server-health.ts';
import { hasSession, toSessionAddress } from './calls/session-address.ts';
import { SilenceWatch } from './calls/silence.ts';
import { toLengthDetails } from './context-length.ts';
import { post, type Reply } from './http-post.ts';
import { findLogprobsDoubt, logprobsOf } from './logprobs.ts';
import { decodeExperts } from './reply/routed-experts.ts';
import { StreamReader } from './stream-reader.ts';
import { isStreamed, type RouteRequest, type TokenRoute, toBody } from './wire.ts';

export interface HttpBackendOptions {
  readonly log: Log;
  /** Replies are read at its pace: hundreds may arrive at the same moment. */
  readonly pace: Pace;
  /** Holds the connections. The caller closes it. */
  readonly dispatcher?: Dispatcher;
  /** A call fails if the server sends nothing for this long; 0 means no limit. */
  readonly stallMs?: number;
  /** How much longer the first byte of a reply may take for each token that the call asks for, while the server is healthy. */
  readonly tokenMs?: number;
  readonly clock?: Clock;
  /** Receives what a call found out about the server. */
  readonly onProbe?: (probe: BackendProbe) => void;
  /** Called when a reply shows that another server may answer now. */
  readonly onDoubt?: () => void;
}

type Send = (route: TokenRoute, request: RouteRequest) => Promise<Answer>;

/** A reply, with its generation if it was streamed or cut. */
export type Answer = Reply & { readonly generation?: Generation };

/** A server with one token route that answers in one reply: llama.cpp, the servers that trainers start themselves, and chat-only servers. */
export function openOneReplyBackend(route: TokenRoute, record: BackendRecord, options: HttpBackendOptions): Backend {
  const send = openSend(record, options);
  return {
    id: record.id,
    policyVersion: record.policyVersion,
    logprobs: logprobsOf(record),
    generate: async (request) => await readGeneration(route, await send(route, request), { request, pace: options.pace }),
  };
}

/** Sends the server a command other than a generation, and returns the status of its reply. */
export function openControl(record: BackendRecord, { dispatcher, pace }: HttpBackendOptions) {
  const base = toBase(record);
  return async (path: string, body: Record<string, unknown>, { signal }: { readonly signal: AbortSignal }): Promise<number> => {
    const { status } = await post({
      url: toSessionAddress(`${base}${path}`),
      headers: toAuthorization(record),
      body: [Buffer.from(JSON.stringify(body))],
      maxReplyBytes: 1 << 16,
      signal,
      dispatcher,
      pace,
    });
    return status;
  };
}

/** Also warns, once each, of the ways in which this backend's logprobs do not match what a request asks for. */
export function openSend(record: BackendRecord, options: HttpBackendOptions): Send {
  const { dispatcher, log, pace, stallMs = 0, tokenMs = 0 } = options;
  const base = toBase(record);
  const watch = new SilenceWatch((signal) => readHealth(record, { signal, dispatcher }), options.clock);
  const warned = new Set<string>();
  const isGateway = hasSession(base);
  let answeredBy: string | undefined;
  const noteHeaders = (reply: Reply) => {
    if (answeredBy !== undefined && answeredBy !== reply.answeredBy) options.onDoubt?.();
    answeredBy = reply.answeredBy;
  };
  return async (route, request) => {
    const doubt = findLogprobsDoubt(record, request.sampling);
    if (doubt !== undefined && !warned.has(doubt)) {
      warned.add(doubt);
      log.warn('backend-logprobs-doubtful', { backend: record.id, logprobs: logprobsOf(record), doubt });
    }
    const firstMs = stallMs === 0 ? 0 : stallMs + tokenMs * request.maxTokens;
    using silence = watch.start({ firstMs, nextMs: stallMs });
    const stream = isStreamed(request) ? route.openStream?.(request) : undefined;
    const checkEvent = (data: string) => throwErrorIn(route.path, data);
    using reader = stream && new StreamReader(stream, { request, checkEvent, pace, clock: options.clock });
    try {
      const reply = await post({
        url: toSessionAddress(`${base}${route.path}`, request.sessionId),
        headers: toHeaders(record, request),
        // A gateway takes `logprobs: 0` for a caller that wants none, and removes them.
        body: toBody(route, isGateway ? { ...request, topLogprobs: 1 } : request, record.model),
        maxReplyBytes: maxReplyBytes(request),
        signal: request.cut ? AbortSignal.any([request.signal, request.cut]) : request.signal,
        dispatcher,
        silence,
        pace,
        onChunk: reader && passChunk(reader, request),
      });
      noteHeaders(reply);
      await pace.turn();
      return reader && reply.isStream
        ? { ...reply, generation: await reader.end(false), ...definedOf({ experts: reader.experts }) }
        : reply;
    } catch (error) {
      request.signal.throwIfAborted();
      if (!request.cut?.aborted) throw error;
      return { status: 200, text: '', generation: (await reader?.end(true)) ?? nothing };
    }
  };
}

function passChunk(reader: StreamReader, { onChunk }: RouteRequest): (chunk: Buffer) => void {
  return (chunk) => {
    onChunk?.();
    reader.onChunk(chunk);
  };
}

const nothing: Generation = { tokenIds: new Int32Array(0), logprobs: new Float32Array(0), finishReason: 'abort' };

/** A request that asks for experts must get them; only an aborted generation may lack them. They are decoded at the pace of all replies. */
export async function readGeneration(route: TokenRoute, answer: Answer, { request, pace }: ReadOptions): Promise<Generation> {
  const generation = answer.generation ?? parseAnswer(route, answer, request);
  const { expertsFormat: format } = route;
  if (!format || !request.sampling.routed_experts || generation.finishReason === 'abort') return generation;
  const wanted = { tokens: request.promptTokens + generation.tokenIds.length - 1, known: request.knownExperts };
  return { ...generation, routedExperts: await pace.run(decodeExperts(answer.experts, format, wanted)) };
}

interface ReadOptions extends Pick<HttpBackendOptions, 'pace'> {
  readonly request: GenerateRequest;
}

function parseAnswer(route: TokenRoute, answer: Answer, request: GenerateRequest): Generation {
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
    case 499: // a server of the trainer that aborts its calls before it loads weights
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
  const { data } = errorEvent.safeParse(tryJson(text));
  if (data) throw toReplyError(path, { status: data.error.code ?? 400, text });
}

const errorEvent = z.looseObject({ error: z.looseObject({ code: z.coerce.number().int().min(400).max(599).optional().catch(undefined) }) });

/** A generous bound on the longest valid reply. Some servers echo the prompt as text, and vLLM may send experts that no one asked for. */
function maxReplyBytes({ promptTokens, maxTokens, sampling }: GenerateRequest): number {
  const experts = sampling.routed_experts ? 8192 * (promptTokens + maxTokens) : 0;
  // vLLM sends masks with every reply if it was started to, and an engine limits them to a few thousand ids.
  const masks = 12 * Math.min(sampling.top_k, 8192) * maxTokens;
  return (1 << 20) + 64 * promptTokens + 2048 * maxTokens + experts + masks;
}

/** The session is sent under every name that a router in front of the servers may look for. */
function toHeaders(record: BackendRecord, { sessionId, requestId, rank }: GenerateRequest): Record<string, string> {
  return {
    'x-session-id': sessionId,
    'x-smg-routing-key': sessionId,
    'x-request-id': requestId,
    ...definedOf({ 'x-data-parallel-rank': rank?.toString() }),
    ...toAuthorization(record),
  };
}

function toAuthorization({ apiKey }: BackendRecord): Record<string, string> {
  return apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
}

function toBase({ url }: BackendRecord): string {
  return url.replace(/\/+$/, '');
}
