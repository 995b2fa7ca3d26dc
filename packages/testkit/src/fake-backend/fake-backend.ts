// A fake backend: an HTTP server with the token APIs of vLLM, SGLang and llama.cpp, a policy instead of a model, and configurable
// latency and faults. Its answer depends only on the prompt, so every token that a service got from it can be checked.

import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { makeAnswer } from './answer.ts';
import type { Fault, Faults } from './faults.ts';
import { llamacppCompletion } from './llamacpp.ts';
import { AbortableCalls, type Pacing, paceAnswer, paceEvents, pause } from './pace.ts';
import type { Policy } from './policy.ts';
import { sglangGenerate } from './sglang.ts';
import { writeEvents, writeJson, writeSpoiled } from './spoil.ts';
import { serveTokenizer, type TokenizerDialect, tokenizerPaths } from './tokenizer.ts';
import { type FakeTokens, openFakeTokens } from './tokens.ts';
import { scaleOutDisabled, toVllmError, toVllmMetrics, toVllmModels, vllmCompletions, vllmGenerate } from './vllm.ts';
import {
  type FakeAnswer,
  type FakeDialect,
  type FakeOutput,
  type FakeRequest,
  isRecord,
  outputFaults,
  parseJson,
  spoilOutput,
  toExperts,
  toOutput,
  toWeightSpans,
} from './wire.ts';

export type Latency =
  | number
  | ((answer: { readonly index: number; readonly promptTokens: number; readonly sampledTokens: number }) => number);

export interface FakeBackendOptions {
  readonly policy: Policy;
  /** Qwen3's by default. */
  readonly tokens?: FakeTokens;
  readonly latencyMs?: Latency;
  /** Milliseconds per token, after the latency. A stream is written token by token. */
  readonly tokenMs?: number;
  /** Part of every logprob, so that a token shows which weights sampled it. */
  readonly weights?: number;
  readonly faults?: Faults;
  readonly port?: number;
  readonly model?: string;
  readonly maxModelLen?: number;
  readonly apiKey?: string;
  /** The `weight_version` of its replies. */
  readonly weightVersion?: string;
  /** How many data-parallel ranks its metrics show. */
  readonly ranks?: number;
  /** How it answers /inference/v1/generate: older versions with 404, newer ones without --enable-scale-out with 403. */
  readonly withoutGenerate?: 404 | 403;
  /** Whether it returns the experts of each token. */
  readonly routedExperts?: boolean;
  /** Which tokenizer routes it has; vLLM's by default. */
  readonly tokenizer?: TokenizerDialect;
  /** How many of the newest requests are kept. */
  readonly keep?: number;
}

const dialects = [vllmGenerate, vllmCompletions, sglangGenerate, llamacppCompletion];

export class FakeBackend implements AsyncDisposable {
  /** The newest requests, oldest first. */
  readonly requests: FakeRequest[] = [];
  /**
   * `request`, `answer` and `abort` (the caller disconnected), each with the FakeRequest; `tokens`, with their count so far, if
   * `tokenMs` is set; `miss`, with the method and path of a request to an unknown route.
   */
  readonly events = new EventEmitter();
  readonly #options: FakeBackendOptions;
  readonly #tokens: FakeTokens;
  readonly #server = createServer((request, response) => {
    // A policy that throws is a broken engine.
    this.#serve(request, response).catch((error) => writeJson(response, 500, toVllmError(500, String(error))));
  });
  #latency: Latency;
  #faults: Faults | undefined;
  #weightVersion: string;
  #weights: number;
  readonly #calls = new AbortableCalls();
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
    this.#weights = options.weights ?? 0;
    this.#server.keepAliveTimeout = 60_000;
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  /** Generations requested so far. */
  get generations(): number {
    return this.#generations;
  }

  /** Requests to unknown routes. */
  get misses(): number {
    return this.#misses;
  }

  get #metrics(): string {
    const { model = 'fake', ranks = 1 } = this.#options;
    const [running, sampled, ended] = [this.#running, this.#sampledTokens, this.#generations - this.#running];
    return toVllmMetrics(model, { running, sampled, ended, ranks });
  }

  get inFlight(): number {
    return this.#running;
  }

  setLatency(latencyMs: Latency): void {
    this.#latency = latencyMs;
  }

  setWeights(weights: number): void {
    this.#weights = weights;
  }

  setWeightVersion(version: string): void {
    this.#weightVersion = version;
  }

  /** Index 0 is the next generation. */
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
    if (dialect === vllmGenerate && this.#options.withoutGenerate === 403) return writeJson(response, 403, scaleOutDisabled);
    if (dialect && !(dialect === vllmGenerate && this.#options.withoutGenerate)) return await this.#generate(dialect, request, response);
    if (path !== undefined && tokenizerPaths.includes(path))
      return await serveTokenizer(request, response, {
        tokens: this.#tokens,
        dialect: this.#options.tokenizer ?? 'vllm',
        maxModelLen,
        miss: () => this.#miss(response),
      });
    switch (`${request.method} ${path}`) {
      case 'POST /inference/v1/abort_requests':
        if (this.#options.withoutGenerate === 403) return writeJson(response, 403, scaleOutDisabled);
        if (this.#options.withoutGenerate) return this.#miss(response);
        return await this.#calls.serveAbort(request, response);
      case 'POST /abort_request':
        return await this.#calls.serveAbort(request, response);
      case 'GET /health':
        response.writeHead(200).end();
        return;
      case 'GET /v1/models':
        return writeJson(response, 200, toVllmModels(model, maxModelLen));
      case 'GET /version':
        return writeJson(response, 200, { version: '0.32.0' });
      case 'GET /metrics':
        response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' }).end(this.#metrics);
        return;
      default:
        this.events.emit('miss', `${request.method} ${request.url}`);
        return this.#miss(response);
    }
  }

  #miss(response: ServerResponse): void {
    this.#misses += 1;
    writeJson(response, 404, { detail: 'Not Found' });
  }

  async #generate(dialect: FakeDialect, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readText(incoming).catch(() => undefined);
    if (body === undefined) return; // the caller disconnected while it was sending
    const json = parseJson(body);
    const request = isRecord(json) ? dialect.parse(json, incoming.headers) : 'the body is not a JSON object';
    if (typeof request === 'string') return writeJson(response, 400, dialect.error(400, request));
    const { maxModelLen = 131_072, keep = 256 } = this.#options;
    const room = maxModelLen - request.promptIds.length;
    const excess = dialect.findExcess(request, maxModelLen);
    if (excess !== undefined && dialect.checksLate && request.options.stream === true)
      return writeEvents(response, [dialect.error(400, excess)], undefined);
    if (excess !== undefined) return writeJson(response, 400, dialect.error(400, excess));
    const index = this.#generations++;
    this.requests.push(request);
    if (this.requests.length > keep) this.requests.shift();
    this.#running += 1;
    this.events.emit('request', request);
    try {
      const speaker = { policy: this.#options.policy, tokens: this.#tokens, defaultMaxTokens: dialect.defaultMaxTokens ?? room };
      const maxTokens = request.maxTokens === undefined ? undefined : Math.min(request.maxTokens, room);
      const answer = makeAnswer({ ...request, maxTokens }, speaker);
      const fault = this.#faults?.(index);
      if (!(await this.#wait(response, { index, answer, request, fault }))) return void this.events.emit('abort', request);
      await this.#write(response, dialect, { request, answer, fault, index });
      const isSilent = fault === 'hang' || fault === 'stuck';
      if (isSilent && !response.closed) await once(response, 'close');
      this.events.emit(isSilent ? 'abort' : 'answer', request);
    } finally {
      this.#running -= 1;
    }
  }

  async #write(
    response: ServerResponse,
    dialect: FakeDialect,
    { request, answer: wanted, fault, index }: { request: FakeRequest; answer: FakeAnswer; fault: Fault | undefined; index: number },
  ): Promise<void> {
    const { model = 'fake', tokenMs = 0 } = this.#options;
    const isPaced = tokenMs > 0 && typeof fault !== 'string';
    const isStream = request.options.stream === true || request.sampling.stream === true;
    const current = (start: number) => ({ version: this.#weightVersion, weights: this.#weights, start });
    const versions = [current(0)];
    const toWhole = (answer: FakeAnswer): FakeOutput => {
      const weightsAt = (index: number) => versions.findLast(({ start }) => start <= index)?.weights ?? 0;
      const weightVersions = toWeightSpans(versions, answer.tokenIds.length);
      const output = { ...toOutput(request, answer, weightsAt), weightVersions };
      return this.#options.routedExperts ? { ...output, routedExperts: toExperts(request, answer) } : output;
    };
    const { decode } = this.#tokens;
    const endsInside = (tokenIds: readonly unknown[]) => decode(tokenIds.map(Number)).endsWith('\ufffd');
    const server = { model, index, weightVersion: this.#weightVersion, endsInside };
    const onTokens = (count: number) => {
      if (versions.at(-1)?.version !== this.#weightVersion) versions.push(current(count - 1));
      this.events.emit('tokens', count);
    };
    const pace = <T>(work: (pacing: Pacing) => Promise<T>) => this.#calls.pace(response, request, { tokenMs, onTokens, work });
    if (isPaced && isStream && dialect.events) {
      this.#sampledTokens += wanted.tokenIds.length;
      const stream = { dialect, request, answer: wanted, server, toOutput: toWhole };
      return await pace((pacing) => paceEvents(response, stream, pacing));
    }
    const answer = isPaced ? await pace((pacing) => paceAnswer(wanted, pacing)) : wanted;
    this.#sampledTokens += answer.tokenIds.length;
    const outputFault = outputFaults.find((kind) => kind === fault);
    const output = outputFault ? spoilOutput(toWhole(answer), outputFault) : toWhole(answer);
    const events = dialect.events?.(request, output, server);
    const isStreamed = typeof fault !== 'string' || outputFault !== undefined || fault === 'stuck';
    const reply = dialect.reply(request, output, server);
    if (events && isStreamed) writeEvents(response, events, fault);
    else if (typeof fault === 'string') writeSpoiled(response, reply, { fault, dialect });
    else writeJson(response, 200, reply);
  }

  /** False if the caller disconnects before the time is up. */
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
    const isThere = await pause(ms, gone.signal);
    response.off('close', abort);
    return isThere;
  }
}

/** Listens on the loopback address, on a free port unless one is given. */
export async function openFakeBackend(options: FakeBackendOptions): Promise<FakeBackend> {
  const backend = new FakeBackend(options, options.tokens ?? (await openFakeTokens()));
  await backend.listen();
  return backend;
}
