// Requests to one Millrace service over kept-alive connections. What the service refuses is thrown as its own RolloutError;
// a service that is away is tried again until `timeoutMs` have passed without an answer. Every call of the API may be repeated.

import { setTimeout as sleep } from 'node:timers/promises';
import { errorBody, messageOf, RolloutError } from '@millrace/protocol';
import { Agent, type Dispatcher, request } from 'undici';

export interface Call {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** How long the service may rightly keep the answer back, as in a long poll. */
  readonly waitMs?: number;
  /** Whether a 429 is waited out here, or thrown as `too-busy` with `details.retry_after_ms`. */
  readonly busy?: 'wait' | 'throw';
  readonly signal?: AbortSignal;
}

/** A zod schema, as far as it is needed here. */
export interface Schema<T> {
  safeParse(value: unknown): { readonly success: true; readonly data: T } | { readonly success: false; readonly error: Error };
}

const firstPauseMs = 50;
const longestPauseMs = 1000;
const awayStatuses = [502, 503, 504];
/** One attempt takes no longer than this, so that a patient client notices a connection that hangs. */
const longestAttemptMs = 30_000;

export class Transport implements AsyncDisposable {
  readonly timeoutMs: number;
  readonly #base: string;
  readonly #key: string | undefined;
  readonly #agent: Agent;
  #answered = false;

  constructor(options: { readonly url: string; readonly key?: string; readonly timeoutMs: number }) {
    this.timeoutMs = options.timeoutMs;
    this.#base = toBase(options.url);
    this.#key = options.key;
    this.#agent = new Agent({ connections: 64, keepAliveTimeout: 30_000, connectTimeout: Math.min(options.timeoutMs, longestAttemptMs) });
  }

  async json<T>(call: Call, schema: Schema<T>): Promise<T> {
    const text = (await this.bytes(call)).toString();
    const parsed = schema.safeParse(tryJson(text));
    if (parsed.success) return parsed.data;
    const seen = `${call.method} ${toUrl(this.#base, call)} answered what this client cannot read: ${start(text)}`;
    throw new RolloutError('internal', seen, { cause: parsed.error });
  }

  async bytes(call: Call): Promise<Buffer> {
    let lastAnswerAt = performance.now();
    let pauseMs = firstPauseMs;
    for (;;) {
      const tried = await this.#attempt(call);
      if (tried.kind === 'answered') return tried.body;
      if (tried.kind === 'refused') throw tried.error;
      if (tried.kind === 'busy') {
        if (call.busy === 'throw') throw tried.error;
        lastAnswerAt = performance.now();
        pauseMs = tried.pauseMs;
      } else if (performance.now() - lastAnswerAt + pauseMs > this.timeoutMs) throw tried.error;
      await pause(pauseMs, call.signal);
      pauseMs = Math.min(pauseMs * 2, longestPauseMs);
    }
  }

  /** An answer whose body is read as it comes; one attempt. */
  async stream(call: Call): Promise<AsyncIterable<Buffer>> {
    const toThrown = (error: unknown) => toBrokenError(call, this.#base, error);
    const reply = await this.#send(call, Math.max(this.timeoutMs, 60_000)).catch((error: unknown) => {
      call.signal?.throwIfAborted();
      throw toThrown(error);
    });
    this.#answered = true;
    if (reply.statusCode < 300) return readBody(reply.body, toThrown);
    throw toError(call, this.#base, { status: reply.statusCode, text: await reply.body.text() });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
  }

  async #send(call: Call, bodyTimeout: number): Promise<Dispatcher.ResponseData> {
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

  async #attempt(call: Call): Promise<Attempt> {
    try {
      const reply = await this.#send(call, this.timeoutMs);
      const body = Buffer.from(await reply.body.arrayBuffer());
      this.#answered = true;
      if (reply.statusCode < 300) return { kind: 'answered', body };
      const error = toError(call, this.#base, { status: reply.statusCode, text: body.toString() });
      if (reply.statusCode === 429) return toBusy(error, toRetryAfterMs(reply.headers['retry-after']));
      return { kind: awayStatuses.includes(reply.statusCode) ? 'away' : 'refused', error };
    } catch (error) {
      call.signal?.throwIfAborted();
      const broken = toBrokenError(call, this.#base, error);
      const final = this.#agent.destroyed || (!this.#answered && isUnreachable(error));
      return { kind: final ? 'refused' : 'away', error: broken };
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

type Attempt =
  | { readonly kind: 'answered'; readonly body: Buffer }
  | { readonly kind: 'busy'; readonly error: RolloutError; readonly pauseMs: number }
  | { readonly kind: 'away' | 'refused'; readonly error: RolloutError };

function toBusy(error: RolloutError, pauseMs: number): Attempt {
  const details = { ...error.details, retry_after_ms: pauseMs };
  return { kind: 'busy', pauseMs, error: new RolloutError('too-busy', error.message, { details }) };
}

/** Waits, or throws the signal's reason at once. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await sleep(ms, undefined, signal === undefined ? {} : { signal }).catch(() => signal?.throwIfAborted());
}

/** Whether a service that is away may yet come back. */
export function isAway(error: unknown): boolean {
  return error instanceof RolloutError && (error.code === 'not-running' || error.code === 'too-busy' || error.details?.away === true);
}

function toBase(url: string): string {
  if (!URL.canParse(url) || !/^https?:/.test(url)) throw new RolloutError('bad-request', `not an http address: ${url}`);
  return url.replace(/\/+$/, '');
}

function toUrl(base: string, call: Call): string {
  const url = new URL(base + call.path);
  for (const [name, value] of Object.entries(call.query ?? {})) if (value !== undefined) url.searchParams.set(name, String(value));
  return url.href;
}

function toError(call: Call, base: string, reply: { readonly status: number; readonly text: string }): RolloutError {
  const parsed = errorBody.safeParse(tryJson(reply.text));
  if (parsed.success) {
    const { code, message, details } = parsed.data.error;
    return new RolloutError(code, message, details === undefined ? {} : { details });
  }
  const seen = `${call.method} ${toUrl(base, call)} answered ${reply.status}: ${start(reply.text) || 'no text'}`;
  return new RolloutError(reply.status === 429 ? 'too-busy' : 'internal', seen, { details: { away: awayStatuses.includes(reply.status) } });
}

function toBrokenError(call: Call, base: string, cause: unknown): RolloutError {
  const seen = cause instanceof Error ? toCause(cause) : String(cause);
  return new RolloutError('internal', `no answer from ${call.method} ${toUrl(base, call)}: ${seen}`, { cause, details: { away: true } });
}

/** A connection that fails for several addresses has an empty message and the reasons inside. */
function toCause(error: Error): string {
  if (error instanceof AggregateError) return error.errors.map((inner: unknown) => messageOf(inner)).join(', ');
  return error.message || error.name;
}

/** A service that never answered this client and refuses connections is more likely a wrong address than a restart. */
function isUnreachable(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'ECONNREFUSED' || code === 'ENOTFOUND' || code === 'EAI_AGAIN';
}

function toRetryAfterMs(header: string | string[] | undefined): number {
  const seconds = Number(header);
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds, 60) * 1000 : longestPauseMs;
}

/** Undefined for what is not JSON, which every schema then refuses. */
export function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function start(text: string): string {
  return text.slice(0, 200).trim();
}
