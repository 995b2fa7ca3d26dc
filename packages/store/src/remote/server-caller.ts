// One request to any of several servers: when one does not answer, the next one gets the same call, which says that it may be the second.
// A call that no server answers for long fails as a call of a store whose database is away does.

import { sleep, systemClock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import { errorBody, errorCodes, messageOf, RolloutError, tryJson } from '@millrace/protocol';
import { Agent, type Dispatcher, request } from 'undici';
import { z } from 'zod';
import { StoreFault } from '../store-fault.ts';
import { workerWire } from './worker-calls.ts';

export interface CallerOptions {
  /** Addresses of servers that share one store: `http://node-1:8007`. */
  readonly servers: readonly string[];
  readonly key?: string | undefined;
  readonly log: Log;
  /** How long a call looks for a server that answers before it fails; ten seconds unless set. */
  readonly patienceMs?: number;
}

interface ServerCall {
  readonly name: string;
  /** The request; whether the same call may have been made before. */
  toRequest(isRepeated: boolean): unknown;
  readonly attachment?: Uint8Array | undefined;
  /** False: it fails if its first reply is lost. */
  readonly mayRepeat?: boolean;
  readonly signal?: AbortSignal;
  /** How long the server may hold the reply back. */
  readonly waitMs?: number;
}

type Tried =
  | { readonly kind: 'value'; readonly value: unknown }
  /** `wasSent`: it may have done what was asked. */
  | { readonly kind: 'lost'; readonly error: StoreFault; readonly wasSent: boolean }
  | { readonly kind: 'busy'; readonly error: StoreFault; readonly pauseMs: number }
  /** The server cannot do it: another one may. */
  | { readonly kind: 'unable'; readonly error: RolloutError }
  | { readonly kind: 'refused'; readonly error: RolloutError };

/** A server that does not answer for this long is given up: a process that was stopped, a cable that was cut. Its own calls may wait ten seconds for the database. */
const answerMs = 20_000;
const [firstPauseMs, longestPauseMs] = [50, 1_000];
/** After a server was left, another one is chosen at random from time to time, so that a server that comes back gets its share. */
const stayMs = 60_000;
const unsent = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT']);

export class ServerCaller implements AsyncDisposable {
  readonly #options: CallerOptions;
  readonly #agent = new Agent({ connections: 32, keepAliveTimeout: 30_000, connectTimeout: 5_000 });
  readonly #closing = new AbortController();
  #at: number;
  #chosenAt = systemClock.monotonic();
  #hasLost = false;

  constructor(options: CallerOptions) {
    this.#options = options;
    this.#at = this.#random();
  }

  /** Whether a reply was lost before: the database may have crashed meanwhile, and what was committed softly be lost. */
  get hasLost(): boolean {
    return this.#hasLost;
  }

  async call(call: ServerCall): Promise<unknown> {
    const { log, servers, patienceMs = 10_000 } = this.#options;
    const startedAt = systemClock.monotonic();
    let isRepeated = false;
    for (let tries = 1, pauseMs = firstPauseMs; ; tries += 1) {
      const { server, at } = this.#choose();
      const tried = await this.#try(server, call, isRepeated);
      if (tried.kind === 'value') return tried.value;
      if (tried.kind === 'refused') throw tried.error;
      this.#leave(at);
      if (tried.kind === 'lost') this.#hasLost = true;
      if (tried.kind === 'lost' && tried.wasSent) isRepeated = true;
      log.warn('server-call-failed', { server, call: call.name, error: messageOf(tried.error) });
      const isOver = tried.kind === 'unable' ? tries >= servers.length : systemClock.monotonic() - startedAt > patienceMs;
      if (isOver || (isRepeated && call.mayRepeat === false)) throw toThrown(tried.error, isRepeated);
      // The next server is asked at once; a pause follows when all of them failed.
      if (tries % servers.length > 0) continue;
      pauseMs = Math.max(pauseMs, tried.kind === 'busy' ? tried.pauseMs : 0);
      await sleep(pauseMs * (0.5 + Math.random()), { signal: this.#signalOf(call) });
      pauseMs = Math.min(2 * pauseMs, longestPauseMs);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new RolloutError('not-running', 'the store is closed'));
    await this.#agent.destroy();
  }

  #signalOf({ signal }: ServerCall): AbortSignal {
    return signal ? AbortSignal.any([signal, this.#closing.signal]) : this.#closing.signal;
  }

  #choose(): { readonly server: string; readonly at: number } {
    if (systemClock.monotonic() - this.#chosenAt > stayMs) this.#move(this.#random());
    return { server: this.#options.servers[this.#at] ?? '', at: this.#at };
  }

  /** Unless another call has left it. */
  #leave(at: number): void {
    if (this.#at === at) this.#move((at + 1) % this.#options.servers.length);
  }

  #move(to: number): void {
    this.#at = to;
    this.#chosenAt = systemClock.monotonic();
  }

  #random(): number {
    return Math.floor(Math.random() * this.#options.servers.length);
  }

  async #try(server: string, call: ServerCall, isRepeated: boolean): Promise<Tried> {
    const where = `server ${server}: ${call.name}`;
    const signal = this.#signalOf(call);
    try {
      const reply = await this.#send(server, call, isRepeated);
      return await readReply(reply, where);
    } catch (error) {
      signal.throwIfAborted();
      const wasSent = !unsent.has(codeOf(error));
      return { kind: 'lost', error: toFault(`${where}: ${messageOf(error)}`, { isUnknown: wasSent }), wasSent };
    }
  }

  async #send(server: string, call: ServerCall, isRepeated: boolean): Promise<Dispatcher.ResponseData> {
    const { key } = this.#options;
    const json = Buffer.from(JSON.stringify(call.toRequest(isRepeated)) ?? 'null');
    return await request(`${server.replace(/\/+$/, '')}/v1/worker-calls/${call.name}`, {
      dispatcher: this.#agent,
      method: 'POST',
      headers: {
        'content-type': 'application/octet-stream',
        'millrace-wire': `${workerWire}`,
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
      },
      body: call.attachment ? Buffer.concat([json, Buffer.from('\n'), call.attachment]) : json,
      signal: this.#signalOf(call),
      headersTimeout: answerMs + (call.waitMs ?? 0),
      bodyTimeout: answerMs,
    });
  }
}

const valueReply = z.object({ value: z.unknown().optional() });
const refusedReply = z.object({ refused: z.object({ code: z.enum(errorCodes), message: z.string() }) });
const faultReply = z.object({ fault: z.object({ message: z.string(), isDiskFull: z.boolean(), isUnknown: z.boolean() }) });

async function readReply({ statusCode, headers, body }: Dispatcher.ResponseData, where: string): Promise<Tried> {
  const json = tryJson(await body.text());
  const value = valueReply.safeParse(json);
  if (statusCode === 200 && value.success) return { kind: 'value', value: value.data.value };
  const { fault } = faultReply.safeParse(json).data ?? {};
  if (fault) return { kind: 'unable', error: toFault(`${where}: ${fault.message}`, fault) };
  const { refused } = refusedReply.safeParse(json).data ?? {};
  if (refused) return { kind: 'refused', error: new RolloutError(refused.code, `${where}: ${refused.message}`) };
  const { code, message } = errorBody.safeParse(json).data?.error ?? {};
  if (code === 'too-busy' || code === 'not-running')
    return { kind: 'busy', error: toFault(`${where}: ${message}`), pauseMs: 1000 * Number(headers['retry-after'] ?? 0) };
  // A proxy says that its server is away.
  if (code === undefined || code === 'internal')
    return { kind: 'lost', error: toFault(`${where}: HTTP ${statusCode} ${message ?? ''}`, { isUnknown: true }), wasSent: true };
  const error = new RolloutError(code, `${where}: ${message}`);
  return code === 'not-found' || headers['millrace-wire'] !== undefined ? { kind: 'unable', error } : { kind: 'refused', error };
}

function toFault(message: string, options: { readonly isUnknown?: boolean; readonly isDiskFull?: boolean } = {}): StoreFault {
  return new StoreFault(message, 'the store failed: no server answers', options);
}

function toThrown(error: RolloutError, isRepeated: boolean): RolloutError {
  if (!(error instanceof StoreFault) || error.isUnknown || !isRepeated) return error;
  return toFault(error.message, { isUnknown: true, isDiskFull: error.isDiskFull });
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  const own = 'code' in error && typeof error.code === 'string' ? error.code : '';
  return own === '' && error.cause !== undefined ? codeOf(error.cause) : own;
}
