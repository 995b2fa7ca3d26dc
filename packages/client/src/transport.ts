// Requests to one Millrace service over kept-alive connections. A refusal by the service is thrown as its own RolloutError. A service
// that is down or restarting is retried until `timeoutMs` have passed without an answer. Every call of the API is safe to repeat.

import { setTimeout as sleep } from 'node:timers/promises';
import { definedOf, type ErrorCode, errorBody, messageOf, RolloutError, type Schema, tryJson } from '@millrace/protocol';
import { Agent, type Dispatcher, request } from 'undici';

export interface CallOptions {
  readonly signal?: AbortSignal;
}

export interface ApiCall extends CallOptions {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** How long the service may hold the reply back, as in a long poll. */
  readonly waitMs?: number;
  /** Whether a 429 is retried here, or thrown as `too-busy` with `details.retry_after_ms`. */
  readonly busy?: 'wait' | 'throw';
}

const firstPauseMs = 50;
const longestPauseMs = 1000;
/** What a proxy returns while the service behind it is down. */
const proxyStatuses = [502, 503, 504];
/** The service may answer later. */
const temporaryCodes: readonly ErrorCode[] = ['unreachable', 'not-running', 'too-busy', 'store-full'];
/** One attempt takes no longer than this, so that a patient client notices a connection that hangs. */
const longestAttemptMs = 30_000;

export class Transport implements AsyncDisposable {
  readonly timeoutMs: number;
  readonly #base: string;
  readonly #key: string | undefined;
  readonly #agent: Agent;
  #hasAnswered = false;

  constructor(options: { readonly url: string; readonly key?: string; readonly timeoutMs: number }) {
    this.timeoutMs = options.timeoutMs;
    this.#base = toBase(options.url);
    this.#key = options.key;
    this.#agent = new Agent({ connections: 64, keepAliveTimeout: 30_000, connectTimeout: Math.min(options.timeoutMs, longestAttemptMs) });
  }

  async json<T>(call: ApiCall, schema: Pick<Schema<T>, 'safeParse'>): Promise<T> {
    const text = (await this.bytes(call)).toString();
    const parsed = schema.safeParse(tryJson(text));
    if (parsed.success) return parsed.data;
    const message = `${call.method} ${toUrl(this.#base, call)} returned a reply that this client cannot read: ${excerpt(text)}`;
    throw new RolloutError('internal', message, { cause: parsed.error });
  }

  async bytes(call: ApiCall): Promise<Buffer> {
    let lastAnswerAt = performance.now();
    let pauseMs = firstPauseMs;
    for (;;) {
      const tried = await this.#try(call);
      if (tried.kind === 'ok') return tried.body;
      if (tried.kind === 'busy') {
        if (call.busy === 'throw') throw tried.error;
        lastAnswerAt = performance.now();
        pauseMs = tried.pauseMs;
      } else if (!this.mayRecover(tried.error) || performance.now() - lastAnswerAt + pauseMs > this.timeoutMs) throw tried.error;
      await pause(pauseMs, call.signal);
      pauseMs = Math.min(pauseMs * 2, longestPauseMs);
    }
  }

  /** A reply whose body is read as it arrives; not retried. */
  async stream(call: ApiCall): Promise<AsyncIterable<Buffer>> {
    const toThrown = (error: unknown) => toConnectionError(call, this.#base, error);
    const reply = await this.#send(call, Math.max(this.timeoutMs, 60_000)).catch((error: unknown) => {
      call.signal?.throwIfAborted();
      throw toThrown(error);
    });
    this.#hasAnswered = true;
    if (reply.statusCode < 300) return readBody(reply.body, toThrown);
    throw toReplyError(call, this.#base, { status: reply.statusCode, text: await reply.body.text() });
  }

  /** Whether the service may answer later. An address that never answered and refuses connections is more likely wrong. */
  mayRecover(error: unknown): boolean {
    if (!(error instanceof RolloutError) || !temporaryCodes.includes(error.code)) return false;
    return this.#hasAnswered || adviceFor(error.cause) === undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
  }

  async #send(call: ApiCall, bodyTimeout: number): Promise<Dispatcher.ResponseData> {
    const headers: Record<string, string> = { accept: 'application/json', ...call.headers };
    if (this.#key !== undefined) headers.authorization = `Bearer ${this.#key}`;
    if (call.body !== undefined) headers['content-type'] = 'application/json';
    return request(toUrl(this.#base, call), {
      dispatcher: this.#agent,
      method: call.method,
      headers,
      body: call.body === undefined ? null : JSON.stringify(call.body),
      signal: call.signal ?? null,
      headersTimeout: Math.min(this.timeoutMs, longestAttemptMs) + (call.waitMs ?? 0),
      bodyTimeout,
    });
  }

  async #try(call: ApiCall): Promise<TryOutcome> {
    try {
      const reply = await this.#send(call, this.timeoutMs);
      const body = Buffer.from(await reply.body.arrayBuffer());
      this.#hasAnswered = true;
      if (reply.statusCode < 300) return { kind: 'ok', body };
      const error = toReplyError(call, this.#base, { status: reply.statusCode, text: body.toString() });
      if (reply.statusCode === 429) return toBusy(error, toRetryAfterMs(reply.headers['retry-after']));
      return { kind: 'failed', error };
    } catch (cause) {
      call.signal?.throwIfAborted();
      return { kind: 'failed', error: toConnectionError(call, this.#base, cause) };
    }
  }
}

async function* readBody(body: AsyncIterable<Buffer>, toThrown: (error: unknown) => Error): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of body) yield chunk;
  } catch (error) {
    throw toThrown(error);
  }
}

type TryOutcome =
  | { readonly kind: 'ok'; readonly body: Buffer }
  | { readonly kind: 'busy'; readonly error: RolloutError; readonly pauseMs: number }
  | { readonly kind: 'failed'; readonly error: RolloutError };

function toBusy(error: RolloutError, pauseMs: number): TryOutcome {
  const details = { ...error.details, retry_after_ms: pauseMs };
  return { kind: 'busy', pauseMs, error: new RolloutError('too-busy', error.message, { details }) };
}

/** Waits, or throws the signal's reason at once. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await sleep(ms, undefined, definedOf({ signal })).catch(() => signal?.throwIfAborted());
}

function toBase(url: string): string {
  if (!URL.canParse(url) || !/^https?:/.test(url))
    throw new RolloutError('bad-request', `${JSON.stringify(url)} is not an HTTP address; give one such as http://localhost:8007`);
  // Users of OpenAI clients write …:8007/v1; the routes have it already.
  return url.replace(/\/+$/, '').replace(/\/v1$/, '');
}

function toUrl(base: string, call: ApiCall): string {
  const url = new URL(base + call.path);
  for (const [name, value] of Object.entries(call.query ?? {})) if (value !== undefined) url.searchParams.set(name, String(value));
  return url.href;
}

function toReplyError(call: ApiCall, base: string, reply: { readonly status: number; readonly text: string }): RolloutError {
  const parsed = errorBody.safeParse(tryJson(reply.text));
  if (parsed.success) {
    const { code, message, details } = parsed.data.error;
    return new RolloutError(code, message, definedOf({ details }));
  }
  const seen = `${call.method} ${toUrl(base, call)} returned ${reply.status}: ${excerpt(reply.text) || 'no text'}`;
  if (proxyStatuses.includes(reply.status)) return new RolloutError('unreachable', seen);
  if (reply.status === 429) return new RolloutError('too-busy', seen);
  return new RolloutError('internal', `${seen}; is ${base} the address of a Millrace service, and not of an LLM server?`);
}

function toConnectionError(call: ApiCall, base: string, cause: unknown): RolloutError {
  if (codeOf(cause) === 'UND_ERR_DESTROYED') return new RolloutError('cancelled', 'the client is closed', { cause });
  const seen = cause instanceof Error ? describeCause(cause) : String(cause);
  const advice = adviceFor(cause);
  const message =
    advice === undefined ? `no reply to ${call.method} ${toUrl(base, call)}: ${seen}` : `no service at ${base} (${seen}): ${advice}`;
  return new RolloutError('unreachable', message, { cause });
}

/** For a body that cannot be read. */
export function toReadError(path: string, cause: unknown): RolloutError {
  const isCorrupt = cause instanceof RolloutError && cause.code === 'trajectory-corrupt';
  const message = `GET ${path} returned a reply that this client cannot ${isCorrupt ? 'trust' : 'read'}: ${messageOf(cause)}`;
  return new RolloutError(isCorrupt ? 'trajectory-corrupt' : 'internal', message, { cause });
}

/** A connection that fails for several addresses has an empty message and the reasons inside. */
function describeCause(error: Error): string {
  if (error instanceof AggregateError) return error.errors.map((inner: unknown) => messageOf(inner)).join(', ');
  return messageOf(error);
}

/** What to do about a connection that could not be opened; undefined for any other failure. */
function adviceFor(error: unknown): string | undefined {
  switch (codeOf(error)) {
    case 'ECONNREFUSED':
      return 'start it with `millrace serve`, or check the address';
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'check the host name';
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
    case 'UND_ERR_CONNECT_TIMEOUT':
      return 'check the address and the network';
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
      return 'write http:// in its address';
    default:
      return undefined;
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

function toRetryAfterMs(header: string | string[] | undefined): number {
  const seconds = Number(header);
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds, 60) * 1000 : longestPauseMs;
}

function excerpt(text: string): string {
  return text.slice(0, 200).trim();
}
