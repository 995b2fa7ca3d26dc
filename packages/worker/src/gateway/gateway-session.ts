// One gateway: requests of an agent that runs elsewhere become turns of lines of history. Only new messages are rendered, and a turn
// that was sampled here goes back into every later prompt with its own ids.

import { randomBytes } from 'node:crypto';
import { Slots } from '@millrace/base/slots';
import { GatewayError, History, type HistoryReply, type ReplyEvent, type WireRequest } from '@millrace/gateway';
import { chooseTurnTokens, isShownAs, TurnStream } from '@millrace/model';
import {
  definedOf,
  describeIssues,
  type Message,
  messageOf,
  RolloutError,
  type Sampling,
  sampling as samplingSchema,
} from '@millrace/protocol';
import { sampleTurn } from '../agent/sample-turn.ts';
import { GatewayBook } from './gateway-book.ts';
import type { GatewayOptions } from './gateway-options.ts';
import type { Lineage, LineagePlace, LineageTurn } from './lineage.ts';
import { type OpenedPrompt, PromptBuilder } from './prompt-builder.ts';

/** A request whose prompt is in its ledger. `run` samples its turn; it must be called. */
interface OpenedTurn {
  readonly promptTokens: number;
  run(emit: (event: ReplyEvent) => void, signal: AbortSignal): Promise<void>;
}

interface TurnCall {
  readonly sampling: Sampling;
  readonly signal: AbortSignal;
  readonly isStreamed: boolean;
  emit(event: ReplyEvent): void;
}

export class GatewaySession implements Disposable {
  readonly book = new GatewayBook();
  readonly #options: GatewayOptions;
  readonly #history = new History<LineagePlace, LineageTurn>();
  /** A request is matched and its prompt placed before the next one is. */
  readonly #lock = new Slots(1);
  readonly #builder: PromptBuilder;
  readonly #running = new Set<Promise<void>>();
  #turns = 0;

  constructor(options: GatewayOptions) {
    this.#options = options;
    this.#builder = new PromptBuilder({ ...options, history: this.#history, book: this.book });
  }

  [Symbol.dispose](): void {
    for (const { sampler } of this.book.lineages) sampler[Symbol.dispose]();
  }

  /** How long the prompt of a request would be. */
  async count(request: WireRequest): Promise<number> {
    return await this.#builder.count(request);
  }

  /** Throws a GatewayError for a request that cannot be answered. */
  async open(request: WireRequest): Promise<OpenedTurn> {
    const sampling = this.#chooseSampling(request);
    using _lock = await this.#lock.acquire({ signal: this.#options.signal });
    const opened = await this.#builder.open(request);
    const { lineage } = opened;
    const promptTokens = lineage.ledger.length;
    if (chooseTurnTokens(promptTokens, this.#options.limits, sampling) === 0)
      throw new GatewayError(
        'context-length',
        `the prompt has ${promptTokens} tokens, and the context of this session ${this.#options.limits.max_context_tokens}`,
        'messages',
      );
    lineage.isBusy = true;
    lineage.tip = undefined;
    const run: OpenedTurn['run'] = (emit, signal) => {
      const running = this.#run(opened, { sampling, emit, signal, isStreamed: request.isStreamed }).finally(() =>
        this.#running.delete(running),
      );
      this.#running.add(running);
      return running;
    };
    return { promptTokens, run };
  }

  /** Resolves when no turn is being sampled; after the session's signal, none will be. */
  async ended(): Promise<void> {
    await Promise.allSettled(this.#running);
  }

  async #run({ lineage, prompt }: OpenedPrompt, { sampling, emit, signal, isStreamed }: TurnCall): Promise<void> {
    const { conversation, limits, tally, pace, clock } = this.#options;
    const { sampler, ledger, tools } = lineage;
    const startedAt = clock.monotonic();
    const [promptTokens, from] = [ledger.length, ledger.segments.length];
    const stream = this.#openStream(lineage, sampling, emit);
    const within = AbortSignal.any([this.#options.signal, signal]);
    const specs = tools.map((spec) => ({ spec }));
    try {
      const traced = definedOf({ span: this.#options.span });
      const options = { sampler, conversation, tools: specs, limits, tally, signal: within, pace, ...traced };
      const taken = await sampleTurn(options, {
        sampling,
        openText: '',
        // An event for each token costs more than a reply that is read as a whole.
        ...(isStreamed && { onTokens: (ids: Int32Array) => stream.push(ids) }),
      });
      if (!taken) throw new GatewayError('context-length', `the backend's context is shorter than the prompt of ${promptTokens} tokens`);
      const { message } = taken;
      const shown = await stream.finish({ ...message, content: taken.content });
      this.#noteReply(lineage, prompt, { message, shown, from });
      const finish = taken.cut ? 'length' : shown.tool_calls ? 'calls' : 'stop';
      const usage = { promptTokens, sampledTokens: taken.tokens, ...definedOf({ cachedTokens: taken.cachedTokens }) };
      emit({ kind: 'end', finish, usage });
      const modelMs = clock.monotonic() - startedAt;
      tally.modelMs += modelMs;
      const calls = (message.tool_calls ?? []).map(({ name }) => name);
      const counts = { turn: tally.turns, sampledTokens: taken.tokens, contextTokens: ledger.length };
      this.#options.onTurn({ ...counts, modelMs, toolMs: 0, calls, repeats: Math.min(1, calls.length) });
    } catch (error) {
      this.#noteBroken({ lineage, prompt }, ledger.segments.length > from);
      if (signal.aborted && !this.#options.signal.aborted) this.#options.onLeave?.();
      throw toGatewayError(error);
    } finally {
      lineage.isBusy = false;
    }
  }

  #noteBroken({ lineage, prompt }: OpenedPrompt, hasSampled: boolean): void {
    if (hasSampled) {
      this.book.noteBroken();
      return;
    }
    lineage.tip = prompt;
    const isOwn = prompt.value.lineage === lineage;
    if (lineage.sampledTokens > 0 || (isOwn && prompt.replies.length > 0)) return;
    // A client that leaves again and again must not fill the memory with prompts.
    this.book.drop(lineage);
    if (isOwn) this.#history.removePrompt(prompt);
  }

  #openStream({ ledger, tools }: Lineage, sampling: Sampling, emit: (event: ReplyEvent) => void): TurnStream {
    const { conversation, pace } = this.#options;
    return new TurnStream({
      parser: conversation.profile.parser,
      tools,
      promptEnd: ledger.segments.at(-1)?.text ?? '',
      isHeld: (sampling.stop ?? []).length > 0 || (sampling.stop_token_ids ?? []).length > 0,
      decode: (ids) => pace.run(conversation.decodeSteps(ids)),
      makeCallId: () => `call_${randomBytes(12).toString('hex')}`,
      emit,
    });
  }

  #noteReply(
    lineage: Lineage,
    prompt: OpenedPrompt['prompt'],
    { message, shown, from }: { readonly message: Message; readonly shown: Message; readonly from: number },
  ): void {
    const segments = lineage.ledger.segments.slice(from);
    const ids = shown.tool_calls?.map(({ id }) => id) ?? [];
    for (const [at, call] of (message.tool_calls ?? []).entries()) {
      const id = ids[at];
      if (id !== undefined) this.#builder.noteCall(id, call);
    }
    const said: Message = {
      ...message,
      ...definedOf({ tool_calls: message.tool_calls?.map((call, at) => ({ ...call, id: ids[at] ?? '' })) }),
    };
    if (!isShownAs(shown, said)) this.book.shownOtherwise += 1;
    const reply: HistoryReply<LineagePlace, LineageTurn> = this.#history.addReply(prompt, [shown, said], {
      lineage,
      segments: lineage.ledger.segments.length,
      message,
      tokenIds: Int32Array.from(segments.flatMap(({ tokenIds }) => [...tokenIds])),
      text: segments.map(({ text }) => text).join(''),
    });
    this.#turns += 1;
    lineage.lastTurn = this.#turns;
    lineage.tip = reply;
  }

  /** Sampling belongs to the session. */
  #chooseSampling({ asked }: WireRequest): Sampling {
    this.book.noteAsked(asked);
    const allowed = Object.entries(asked).filter(([name]) => this.#options.allow.includes(name));
    if (allowed.length === 0) return this.#options.sampling;
    const parsed = samplingSchema.safeParse({ ...this.#options.sampling, ...Object.fromEntries(allowed) });
    if (parsed.success) return parsed.data;
    throw new GatewayError('invalid', `these sampling parameters cannot be used: ${describeIssues(parsed.error.issues)}`);
  }
}

function toGatewayError(error: unknown): unknown {
  if (!(error instanceof RolloutError)) return error;
  return new GatewayError(error.code === 'too-stale' ? 'ended' : 'failed', `${error.code}: ${messageOf(error)}`);
}
