// A fake backend: an HTTP server with the token APIs of vLLM, SGLang and llama.cpp, a policy instead of a model, and configurable
// latency and faults. Its answer depends only on the prompt, so every token that a service got from it can be checked.

import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { FakeCalls } from './calls.ts';
import { type ControlRoute, devRoutes, openRoutes, scaleOutAbortPath, sglangRoutes, stopAll } from './control.ts';
import { llamacppCompletion, llamaNotFound, toLlamaModels } from './engines/llamacpp.ts';
import { promptIdsGenerate } from './engines/prompt-ids.ts';
import { sglangGenerate, toSglangModels, toSglangServerInfo } from './engines/sglang.ts';
import { scaleOutDisabled, toVllmMetrics, toVllmModels, vllmCompletions, vllmGenerate } from './engines/vllm.ts';
import { toVllmError } from './engines/vllm-checks.ts';
import { type FakeRequest, parseJson } from './engines/wire.ts';
import type { Faults } from './faults.ts';
import type { FakeBackendOptions, Latency } from './options.ts';
import { prepareReply, writeEmpty, writeJson } from './spoil.ts';
import { serveTokenizer, tokenizerPaths } from './tokenizer.ts';
import { type FakeTokens, openFakeTokens } from './tokens.ts';

let starts = 0;

/** Two fakes of one moment are still two processes. */
function nextStart(): number {
  starts += 1;
  return (performance.timeOrigin + performance.now()) / 1000 + starts;
}

/** The last is chosen by its engine only: SGLang has the same path. */
const dialects = [vllmGenerate, vllmCompletions, sglangGenerate, llamacppCompletion, promptIdsGenerate];

export class FakeBackend implements AsyncDisposable {
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
  readonly #calls: FakeCalls;
  readonly #startedAt: number;
  #misses = 0;

  constructor(options: FakeBackendOptions, tokens: FakeTokens) {
    this.#options = options;
    this.#tokens = tokens;
    this.#calls = new FakeCalls(options, tokens, this.events);
    this.#startedAt = options.startedAt ?? nextStart();
    this.#server.keepAliveTimeout = 60_000;
  }

  get #host(): string {
    return this.#options.host ?? '127.0.0.1';
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://${this.#host}:${port}`;
  }

  /** The newest requests, oldest first. */
  get requests(): readonly FakeRequest[] {
    return this.#calls.requests;
  }

  /** Generations requested so far. */
  get generations(): number {
    return this.#calls.count;
  }

  /** Requests to unknown routes. */
  get misses(): number {
    return this.#misses;
  }

  get inFlight(): number {
    return this.#calls.active.size;
  }

  setLatency(latencyMs: Latency): void {
    this.#calls.latency = latencyMs;
  }

  setWeights(weights: number): void {
    this.#calls.weights = weights;
  }

  setWeightVersion(version: string): void {
    this.#calls.weightVersion = version;
  }

  /** Index 0 is the next generation. */
  setFaults(faults: Faults | undefined): void {
    const base = this.#calls.count;
    this.#calls.faults = faults && ((index) => faults(index - base));
  }

  async listen(): Promise<void> {
    this.#server.listen(this.#options.port ?? 0, this.#host);
    await once(this.#server, 'listening');
  }

  /** As when the process with the weights dies or vLLM gets SIGTERM: every call ends with an error, and then nothing listens. */
  async crash(): Promise<void> {
    stopAll({ generations: this.#calls.active }, 'dead');
    await this.#calls.drain(() => true);
    const closed = once(this.#server, 'close');
    this.#server.close();
    const idle = setInterval(() => this.#server.closeIdleConnections(), 10);
    await closed;
    clearInterval(idle);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { apiKey, engine, withoutGenerate, maxModelLen = 131_072 } = this.#options;
    const { pathname: path, searchParams: query } = new URL(request.url ?? '/', 'http://fake');
    const dialect = dialects.find((one) => one.path === path && (engine === undefined || one.engine === engine));
    const own = dialect?.engine ?? engine ?? 'vllm';
    prepareReply(response, own);
    if (apiKey !== undefined && (dialect || path.includes('/v1')) && request.headers.authorization !== `Bearer ${apiKey}`)
      return writeJson(response, 401, { error: 'Unauthorized' });
    const isScaleOut = dialect === vllmGenerate || path === scaleOutAbortPath;
    if (isScaleOut && withoutGenerate === 403) return writeJson(response, 403, scaleOutDisabled);
    if (dialect && request.method !== 'POST' && own !== 'llamacpp') {
      response.setHeader('allow', 'POST');
      return writeJson(response, 405, { detail: 'Method Not Allowed' });
    }
    if (dialect && !(isScaleOut && withoutGenerate)) return await this.#calls.serve(dialect, request, response);
    if (engine === 'prorl') return this.#miss(response);
    if (tokenizerPaths.includes(path)) {
      const miss = () => this.#miss(response);
      return await serveTokenizer(request, response, {
        tokens: this.#tokens,
        dialect: this.#options.tokenizer ?? (own === 'prorl' ? 'vllm' : own),
        model: this.#options.model ?? 'fake',
        version: this.#options.version ?? 'fake',
        maxModelLen,
        miss,
      });
    }
    const control = this.#findControl(`${request.method} ${path}`);
    if (control) return await this.#control(control, { request, response, query });
    if (this.#writeInfo(`${request.method} ${path}`, response)) return;
    this.events.emit('miss', `${request.method} ${request.url}`);
    return this.#miss(response);
  }

  #miss(response: ServerResponse): void {
    this.#misses += 1;
    writeJson(response, 404, this.#options.engine === 'llamacpp' ? llamaNotFound : { detail: 'Not Found' });
  }

  #writeInfo(route: string, response: ServerResponse): boolean {
    const { engine, model = 'fake', maxModelLen = 131_072, vocabularySize = 151_936, ranks = 1, cacheTokens, version } = this.#options;
    const [running, sampled, ended] = [this.inFlight, this.#calls.sampledTokens, this.generations - this.inFlight];
    const isLlama = engine === 'llamacpp';
    if (route === 'GET /health' && isLlama) writeJson(response, 200, { status: 'ok' });
    else if (route === 'GET /health') writeEmpty(response, 200);
    else if (route === 'GET /v1/models' && isLlama) writeJson(response, 200, toLlamaModels(model, maxModelLen, vocabularySize));
    else if (route === 'GET /v1/models')
      writeJson(response, 200, (engine === 'sglang' ? toSglangModels : toVllmModels)(model, maxModelLen));
    else if (route === 'GET /server_info' && engine === 'sglang') writeJson(response, 200, toSglangServerInfo(this.#startedAt, version));
    else if (route === 'GET /version' && (engine ?? 'vllm') === 'vllm') writeJson(response, 200, { version: version ?? '0.32.0' });
    else if ((route === 'GET /metrics' || route === 'GET /metrics/') && !isLlama)
      response
        .writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
        .end(toVllmMetrics(model, { running, sampled, ended, ranks, cacheTokens, startedAt: this.#startedAt }));
    else return false;
    return true;
  }

  #findControl(route: string): ControlRoute | undefined {
    const { engine, devMode = false } = this.#options;
    if (engine === 'llamacpp') return undefined;
    const vllm = engine === 'sglang' ? undefined : ((devMode ? devRoutes[route] : undefined) ?? openRoutes[route]);
    return vllm ?? (engine === 'vllm' ? undefined : sglangRoutes[route]);
  }

  async #control(
    route: ControlRoute,
    { request, response, query }: { request: IncomingMessage; response: ServerResponse; query: URLSearchParams },
  ): Promise<void> {
    const body: unknown = parseJson(await readText(request).catch(() => ''));
    const { gate, active: generations, weightVersion } = this.#calls;
    const controlled = {
      gate,
      generations,
      weightVersion,
      setWeightVersion: (version: string) => this.setWeightVersion(version),
      idle: () => this.#calls.drain(({ isRunning }) => isRunning),
    };
    const { status, body: reply, isUncaught } = await route(controlled, { body, query });
    if (isUncaught) response.removeHeader('vary');
    if (reply) writeJson(response, status, reply);
    else writeEmpty(response, status);
  }
}

/** Listens on the loopback address, on a free port unless one is given. */
export async function openFakeBackend(options: FakeBackendOptions): Promise<FakeBackend> {
  const backend = new FakeBackend(options, options.tokens ?? (await openFakeTokens()));
  await backend.listen();
  return backend;
}
