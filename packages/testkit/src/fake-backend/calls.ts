// The generations of a fake backend: each is checked, waits its time, and is answered whole, as a stream, with a fault, or with what is
// there when it ends early.

import { EventEmitter, once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { makeAnswer } from './answer.ts';
import { engineDead } from './engines/vllm.ts';
import {
  cutOutput,
  type FakeAnswer,
  type FakeDialect,
  type FakeOutput,
  type FakePart,
  type FakeRequest,
  type FakeServer,
  findEventEnds,
  isRecord,
  isRefusal,
  outputFaults,
  parseJson,
  splitOutput,
  spoilOutput,
  toLogprobs,
  toOutput,
} from './engines/wire.ts';
import type { Fault, Faults } from './faults.ts';
import { FakeGeneration, Gate, wait } from './generation.ts';
import type { FakeBackendOptions, Latency } from './options.ts';
import { prepareReply, toEventLines, writeEvents, writeJson, writeRefusal, writeSpoiled } from './spoil.ts';
import type { FakeTokens } from './tokens.ts';

export class FakeCalls {
  /** The newest requests, oldest first. */
  readonly requests: FakeRequest[] = [];
  readonly events: EventEmitter;
  readonly gate = new Gate();
  readonly active = new Set<FakeGeneration>();
  latency: Latency;
  faults: Faults | undefined;
  weightVersion: string;
  weights: number;
  /** Generations requested so far. */
  count = 0;
  sampledTokens = 0;
  readonly #options: FakeBackendOptions;
  readonly #tokens: FakeTokens;
  readonly #ends = new EventEmitter();

  constructor(options: FakeBackendOptions, tokens: FakeTokens, events: EventEmitter) {
    this.#options = options;
    this.#tokens = tokens;
    this.events = events;
    this.latency = options.latencyMs ?? 0;
    this.faults = options.faults;
    this.weightVersion = options.weightVersion ?? 'default';
    this.weights = options.weights ?? 0;
    this.#ends.setMaxListeners(0);
  }

  /** Resolves when none of these generations is left. */
  async drain(isMeant: (generation: FakeGeneration) => boolean): Promise<void> {
    while ([...this.active].some(isMeant)) await once(this.#ends, 'end');
  }

  async serve(dialect: FakeDialect, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readText(incoming).catch(() => undefined);
    if (body === undefined) return; // the caller disconnected while it was sending
    const {
      model = 'fake',
      maxModelLen = 131_072,
      vocabularySize = 151_936,
      maxRequests = Number.POSITIVE_INFINITY,
      keep = 256,
    } = this.#options;
    const json = parseJson(body);
    const isStream = isRecord(json) && json.stream === true;
    const { model: named, adapters } = this.#options;
    const models = named === undefined && adapters === undefined ? undefined : [model];
    const request = dialect.parse(json, incoming.headers, { models, adapters, contextTokens: maxModelLen, vocabularySize });
    if (isRefusal(request)) return writeRefusal(response, request, { isStream, dialect });
    const decode = (tokenIds: readonly unknown[]) => this.#tokens.decode(tokenIds.map(Number));
    const server = { model, index: this.count, weightVersion: this.weightVersion, contextTokens: maxModelLen, decode };
    if (this.active.size >= maxRequests && dialect.busy)
      return writeRefusal(response, dialect.busy(request, server), { isStream, dialect });
    // A probe at a join is no generation of a rollout: it is not counted, and no fault or script is used up by it.
    if (request.id === 'probe-logprobs')
      return writeJson(response, 200, dialect.reply(request, probeOutput(request, this.#options.isProcessed), server));
    this.count += 1;
    this.requests.push(request);
    if (this.requests.length > keep) this.requests.shift();
    const generation = new FakeGeneration(dialect.abortId?.(request));
    this.active.add(generation);
    response.once('close', () => generation.stop('gone'));
    if (response.closed) generation.stop('gone');
    this.events.emit('request', request);
    try {
      const isAnswered = await this.#answer(response, { generation, dialect, request, server });
      this.events.emit(isAnswered ? 'answer' : 'abort', request);
    } finally {
      this.active.delete(generation);
      this.#ends.emit('end');
    }
  }

  /** False if the caller disconnected before the end. */
  async #answer(response: ServerResponse, call: FakeCall): Promise<boolean> {
    const { generation, dialect, request, server } = call;
    const room = server.contextTokens - request.promptIds.length;
    const speaker = { policy: this.#options.policy, tokens: this.#tokens, defaultMaxTokens: dialect.defaultMaxTokens ?? room };
    const maxTokens = request.maxTokens === undefined ? undefined : Math.min(request.maxTokens, room);
    const answer = makeAnswer({ ...request, maxTokens }, speaker);
    const fault = this.faults?.(server.index);
    if (this.gate.isPaused) await this.gate.pass('new', generation.signal);
    generation.isRunning = true;
    await this.#delay({ answer, fault, ...call });
    if (generation.end === 'gone') return false;
    if (typeof fault !== 'string') return await this.#sample(response, answer, call);
    const { length } = answer.tokenIds;
    this.sampledTokens += length;
    const whole = {
      ...toOutput(request, answer, this.#options),
      logprobs: toLogprobs(request, answer, { begin: 0, end: length, weights: this.weights, isProcessed: this.#options.isProcessed }),
      weightVersions: [{ version: this.weightVersion, start: 0, end: length }],
    };
    const outputFault = outputFaults.find((kind) => kind === fault);
    const output = outputFault ? spoilOutput(whole, outputFault) : whole;
    if (request.isStream && (outputFault || fault === 'stuck'))
      writeEvents(response, {
        events: splitOutput(output, request).flatMap((part) => dialect.events(request, part, server)),
        dialect,
        fault,
      });
    else writeSpoiled(response, dialect.reply(request, output, server), { fault, dialect });
    if (fault !== 'hang' && fault !== 'stuck') return true;
    if (!response.closed) await once(response, 'close');
    return false;
  }

  /** A good reply, whole or as a stream, or what is there of it when it ends early. */
  async #sample(response: ServerResponse, answer: FakeAnswer, { generation, dialect, request, server }: FakeCall): Promise<boolean> {
    const { tokenMs = 0 } = this.#options;
    const total = answer.tokenIds.length;
    const logprobs: number[] = [];
    const output = { ...toOutput(request, answer, this.#options), logprobs };
    const ends = findEventEnds(total, request);
    const toText = (part: FakePart) => toEventLines(dialect.events(request, part, server));
    let sent = '';
    let begin = 0;
    let known = 0;
    const onStep = (count: number) => {
      this.sampledTokens += count - known;
      logprobs.push(
        ...toLogprobs(request, answer, { begin: known, end: count, weights: this.weights, isProcessed: this.#options.isProcessed }),
      );
      known = count;
      const part = { ...output, weightVersions: generation.weightVersions };
      for (const end of request.isStream ? ends.filter((one) => one > begin && one <= count) : []) {
        sent += toText({ output: part, begin, end, isLast: end === total });
        begin = end;
      }
      if (tokenMs === 0) return;
      if (sent !== '') response.write(sent);
      sent = '';
      this.events.emit('tokens', count);
    };
    if (request.isStream) prepareReply(response, dialect.engine, 'stream');
    const steps = Array.from(answer.tokenIds, (_, i) => i + 1);
    const count = await generation.sample(total, { gate: this.gate, tokenMs, ends: steps, version: () => this.weightVersion, onStep });
    if (generation.end === 'gone') return false;
    const isCut = count < total;
    const finishReason = isCut ? ('abort' as const) : answer.finishReason;
    const whole = { ...cutOutput(output, 0, count), weightVersions: generation.weightVersions, finishReason };
    if (generation.end === 'dead' && isCut) {
      if (request.isStream) response.end(`${sent}${toEventLines([engineDead])}${dialect.lastLine}`);
      else writeJson(response, 500, engineDead);
    } else if (request.isStream) {
      if (isCut || total === 0) sent += toText({ output: whole, begin, end: count, isLast: true });
      response.end(`${sent}${dialect.lastLine}`);
    } else writeJson(response, 200, dialect.reply(request, whole, server));
    return true;
  }

  /** Ends early with the generation. */
  async #delay({ server, answer, request, fault, generation }: FakeCall & { answer: FakeAnswer; fault: Fault | undefined }): Promise<void> {
    const sizes = { index: server.index, promptTokens: request.promptIds.length, sampledTokens: answer.tokenIds.length };
    const ms = (typeof this.latency === 'number' ? this.latency : this.latency(sizes)) + (typeof fault === 'object' ? fault.lateMs : 0);
    if (ms > 0 && generation.end === undefined) await wait(ms, generation.signal);
  }
}

/** A generation with what it was asked for. */
interface FakeCall {
  readonly generation: FakeGeneration;
  readonly dialect: FakeDialect;
  readonly request: FakeRequest;
  readonly server: FakeServer;
}

/** One token with its logprob. */
function probeOutput(request: FakeRequest, isProcessed: boolean | undefined): FakeOutput {
  const answer = { tokenIds: Int32Array.of(2), finishReason: 'length' } as const;
  return { ...toOutput(request, answer, {}), logprobs: toLogprobs(request, answer, { begin: 0, end: 1, weights: 0, isProcessed }) };
}
