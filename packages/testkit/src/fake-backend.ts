// A fake backend: an HTTP server that speaks the token APIs of vLLM, SGLang and llama.cpp, with a policy in place of a model, and latency and faults on
// order. What it answers depends only on the prompt, so every token that a service got from it can be checked.

import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { Fault, Faults } from './fake-backend-faults.ts';
import { writeEvents, writeJson, writeSpoiled } from './fake-backend-spoil.ts';
import { type FakeTokens, findAssistantStarts, openFakeTokens } from './fake-backend-tokens.ts';
import { type FakeAnswer, type FakeDialect, type FakeRequest, isRecord, outputFaults, spoilOutput, toOutput } from './fake-backend-wire.ts';
import { llamacppCompletion } from './fake-llamacpp.ts';
import { sglangGenerate } from './fake-sglang.ts';
import { serveTokenizer, type TokenizerDialect, tokenizerPaths } from './fake-tokenizer.ts';
import { toVllmError, vllmCompletions, vllmGenerate } from './fake-vllm.ts';
import type { Policy, PolicyInput } from './policy.ts';

export type Latency =
  | number
  | ((answer: { readonly index: number; readonly promptTokens: number; readonly sampledTokens: number }) => number);

export interface FakeBackendOptions {
  readonly policy: Policy;
  /** Qwen3's where it is absent. */
  readonly tokens?: FakeTokens;
  readonly latencyMs?: Latency;
  readonly faults?: Faults;
  readonly port?: number;
  readonly model?: string;
  readonly maxModelLen?: number;
  readonly apiKey?: string;
  /** What SGLang tells in every reply. */
  readonly weightVersion?: string;
  /** Older servers have no /inference/v1/generate. */
  readonly withoutGenerate?: boolean;
  /** Whether it was started to return the experts of each token. */
  readonly routedExperts?: boolean;
  /** Whose tokenizer routes it has; vLLM's where it is absent. */
  readonly tokenizer?: TokenizerDialect;
  /** How many of the newest requests are kept. */
  readonly keep?: number;
}

const dialects = [vllmGenerate, vllmCompletions, sglangGenerate, llamacppCompletion];

export class FakeBackend implements AsyncDisposable {
  /** The newest requests, oldest first. */
  readonly requests: FakeRequest[] = [];
  /** `request`, `answer` and `abort` (the caller went away), each with the FakeRequest. */
  readonly events = new EventEmitter();
  readonly #options: FakeBackendOptions;
  readonly #tokens: FakeTokens;
  readonly #server = createServer((request, response) => {
    // A policy that throws is an engine that broke.
    this.#serve(request, response).catch((error) => writeJson(response, 500, toVllmError(500, String(error))));
  });
  #latency: Latency;
  #faults: Faults | undefined;
  #weightVersion: string;
  #generations = 0;
  #misses = 0;
  #running = 0;
  #sampledTokens = 0;

  constructor(options: FakeBackendOptions, tokens: FakeTokens) {
    this.#options = options;
    this.#tokens = tokens;
    this.#latency = options.latencyMs ?? 0;
    this.#faults = options.faults;
    this.#weightVersion = options.weightVersion ?? 'default';
    this.#server.keepAliveTimeout = 60_000;
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  /** Generations asked for so far. */
  get generations(): number {
    return this.#generations;
  }

  /** Requests to routes that it has not. */
  get misses(): number {
    return this.#misses;
  }

  get inFlight(): number {
    return this.#running;
  }

  setLatency(latencyMs: Latency): void {
    this.#latency = latencyMs;
  }

  setWeightVersion(version: string): void {
    this.#weightVersion = version;
  }

  /** Counts from the next generation on. */
  setFaults(faults: Faults | undefined): void {
    const base = this.#generations;
    this.#faults = faults && ((index) => faults(index - base));
  }

  async listen(): Promise<void> {
    this.#server.listen(this.#options.port ?? 0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { model = 'fake', apiKey, maxModelLen = 131_072 } = this.#options;
    const path = request.url?.split('?')[0];
    const dialect = request.method === 'POST' ? dialects.find((candidate) => candidate.path === path) : undefined;
    if (apiKey !== undefined && (dialect || path?.includes('/v1')) && request.headers.authorization !== `Bearer ${apiKey}`) {
      return writeJson(response, 401, { error: 'Unauthorized' });
    }
    if (dialect && !(dialect === vllmGenerate && this.#options.withoutGenerate)) return await this.#generate(dialect, request, response);
    if (path !== undefined && tokenizerPaths.includes(path))
      return await serveTokenizer(request, response, {
        tokens: this.#tokens,
        dialect: this.#options.tokenizer ?? 'vllm',
        maxModelLen,
        miss: () => this.#miss(response),
      });
    switch (`${request.method} ${path}`) {
      case 'GET /health':
        response.writeHead(200).end();
        return;
      case 'GET /v1/models':
        return writeJson(response, 200, {
          object: 'list',
          data: [
            { id: model, object: 'model', created: 1_700_000_000, owned_by: 'vllm', root: model, parent: null, max_model_len: maxModelLen },
          ],
        });
      case 'GET /version':
        return writeJson(response, 200, { version: '0.28.0' });
      case 'GET /metrics':
        response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' }).end(this.#metrics());
        return;
      default:
        return this.#miss(response);
    }
  }

  #miss(response: ServerResponse): void {
    this.#misses += 1;
    writeJson(response, 404, { detail: 'Not Found' });
  }

  async #generate(dialect: FakeDialect, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readText(incoming).catch(() => undefined);
    if (body === undefined) return; // the caller went away while it was sending
    const json = parseJson(body);
    const request = isRecord(json) ? dialect.parse(json, incoming.headers) : 'the body is not a JSON object';
    if (typeof request === 'string') return writeJson(response, 400, dialect.error(400, request));
    const { maxModelLen = 131_072, keep = 256 } = this.#options;
    const room = maxModelLen - request.promptIds.length;
    if (room < (request.maxTokens ?? 1)) {
      const message = `This model's maximum context length is ${maxModelLen} tokens. However, you requested ${request.maxTokens} output tokens and your prompt contains ${request.promptIds.length} input tokens.`;
      return writeJson(response, 400, dialect.error(400, message));
    }
    const index = this.#generations++;
    this.requests.push(request);
    if (this.requests.length > keep) this.requests.shift();
    this.#running += 1;
    this.events.emit('request', request);
    try {
      const answer = this.#answer(request, dialect.defaultMaxTokens ?? room);
      const fault = this.#faults?.(index);
      if (!(await this.#wait(response, { index, answer, request, fault }))) return void this.events.emit('abort', request);
      this.#sampledTokens += answer.tokenIds.length;
      this.#write(response, dialect, { request, answer, fault, index });
      const isSilent = fault === 'hang' || fault === 'stuck';
      if (isSilent && !response.closed) await once(response, 'close');
      this.events.emit(isSilent ? 'abort' : 'answer', request);
    } finally {
      this.#running -= 1;
    }
  }

  #write(
    response: ServerResponse,
    dialect: FakeDialect,
    { request, answer, fault, index }: { request: FakeRequest; answer: FakeAnswer; fault: Fault | undefined; index: number },
  ): void {
    const { model = 'fake' } = this.#options;
    const { decode } = this.#tokens;
    const outputFault = outputFaults.find((kind) => kind === fault);
    const plain = toOutput(request, answer);
    const whole = this.#options.routedExperts ? { ...plain, routedExperts: toExperts(request, answer) } : plain;
    const output = outputFault ? spoilOutput(whole, outputFault) : whole;
    const endsInside = (tokenIds: readonly unknown[]) => decode(tokenIds.map(Number)).endsWith('\ufffd');
    const server = { model, index, weightVersion: this.#weightVersion, endsInside };
    const events = dialect.events?.(request, output, server);
    const isStreamed = typeof fault !== 'string' || outputFault !== undefined || fault === 'stuck';
    const reply = dialect.reply(request, output, server);
    if (events && isStreamed) writeEvents(response, events, fault);
    else if (typeof fault === 'string') writeSpoiled(response, reply, { fault, dialect });
    else writeJson(response, 200, reply);
  }

  /** False when the caller has gone before the time is up. */
  async #wait(
    response: ServerResponse,
    { index, answer, request, fault }: { index: number; answer: FakeAnswer; request: FakeRequest; fault: Fault | undefined },
  ): Promise<boolean> {
    const sizes = { index, promptTokens: request.promptIds.length, sampledTokens: answer.tokenIds.length };
    const ms = (typeof this.#latency === 'number' ? this.#latency : this.#latency(sizes)) + (typeof fault === 'object' ? fault.lateMs : 0);
    if (ms <= 0 || response.closed) return !response.closed;
    const gone = new AbortController();
    const abort = () => gone.abort();
    response.once('close', abort);
    await delay(ms, undefined, { signal: gone.signal }).catch(() => undefined); // an abort shows in the signal
    response.off('close', abort);
    return !gone.signal.aborted;
  }

  #answer({ promptIds, maxTokens: asked, headers }: FakeRequest, defaultMaxTokens: number): FakeAnswer {
    const maxTokens = asked ?? defaultMaxTokens;
    const { decode, encode, endOfTurnId } = this.#tokens;
    const starts = findAssistantStarts(promptIds, this.#tokens);
    const input: PolicyInput = {
      promptIds,
      maxTokens,
      turn: Math.max(0, starts.length - 1),
      sessionId: headers['x-session-id']?.toString(),
      decode: () => decode(promptIds),
      opening: () => decode(promptIds.subarray(0, starts[0])),
      tail: (n) => decode(promptIds.subarray(-n)),
      encode,
    };
    const said = this.#options.policy(input);
    const whole = Int32Array.from([...('text' in said ? encode(said.text) : said.tokenIds), endOfTurnId]);
    const tokenIds = whole.subarray(0, maxTokens);
    const finishReason = whole.length > maxTokens ? 'length' : 'stop';
    return { tokenIds, finishReason, text: 'text' in said && finishReason === 'stop' ? said.text : '' };
  }

  #metrics(): string {
    const { model = 'fake' } = this.#options;
    const rows = [
      ['gauge', 'num_requests_running', this.#running],
      ['gauge', 'num_requests_waiting', 0],
      ['gauge', 'kv_cache_usage_perc', 0],
      ['counter', 'generation_tokens_total', this.#sampledTokens],
      ['counter', 'request_success_total', this.#generations - this.#running],
    ];
    return rows.map(([kind, name, value]) => `# TYPE vllm:${name} ${kind}\nvllm:${name}{model_name="${model}"} ${value}\n`).join('');
  }
}

/** Two layers of two experts: for each token, its place and its id, in what a byte holds. */
function toExperts({ promptIds }: FakeRequest, { tokenIds }: FakeAnswer): Int32Array {
  const all = [...promptIds, ...tokenIds].slice(0, -1);
  return Int32Array.from(all.flatMap((id, at) => [at & 0xff, id & 0xff, (id >> 8) & 0xff, 7]));
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // what is not JSON is no object either
  }
}

/** Listens on a free port of the loopback address unless one is given. */
export async function openFakeBackend(options: FakeBackendOptions): Promise<FakeBackend> {
  const backend = new FakeBackend(options, options.tokens ?? (await openFakeTokens()));
  await backend.listen();
  return backend;
}
