// The turn loop: sample, parse, act, append, until the agent stops. What the model sees next is always what it saw before,
// plus what it sampled, plus the new messages; the ledger joins them and nothing is rendered twice.

import { type Limits, type Message, RolloutError, type Sampling, type StopReason, type ToolCall } from '@millrace/protocol';
import { type Clock, systemClock } from '../base/clock.ts';
import { Expired } from '../base/deadline.ts';
import type { Pace } from '../base/pace.ts';
import type { SampledTurn, Sampler } from '../inference/sampler.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { appendNext, renderNext } from '../trajectory/branch.ts';
import { chooseAnswerRoom, chooseTurnTokens, fitAnswers } from '../trajectory/budget.ts';
import type { Conversation } from '../trajectory/conversation.ts';
import type { Tool } from './tool.ts';

/** What the agent has done so far; kept by the caller, so that it is there whatever ends the loop. */
export interface AgentTally {
  turns: number;
  malformedCalls: number;
  modelMs: number;
  toolMs: number;
}

export interface TurnReport {
  readonly turn: number;
  readonly sampledTokens: number;
  readonly contextTokens: number;
  readonly modelMs: number;
  readonly toolMs: number;
  readonly calls: readonly string[];
}

export interface AgentOptions {
  readonly messages: readonly Message[];
  readonly tools: readonly Tool[];
  readonly session: Sampler;
  readonly conversation: Conversation;
  readonly sandbox?: Sandbox;
  readonly sampling: Sampling;
  readonly limits: Limits;
  readonly tally: AgentTally;
  readonly signal: AbortSignal;
  readonly clock?: Clock;
  /** Everything is tokenised at its pace: many come at once, and some is long. */
  readonly pace: Pace;
  onTurn?(report: TurnReport): void;
  /** Asked when the context is full: the messages to go on with, as a new branch. Undefined, or more than fits, ends it as `context_overflow`. */
  compact?(messages: readonly Message[]): Promise<readonly Message[] | undefined>;
}

export interface AgentStop {
  readonly stopReason: StopReason;
  readonly answer: string;
}

/** So many turns in a row without one call that can be read, and the agent is stopped. */
const maxMalformedTurns = 3;

/** Runs to the agent's end. When the signal's reason is an expired deadline that is an end too; any other abort is thrown. */
export async function runTurns(options: AgentOptions): Promise<AgentStop> {
  const { session, conversation, messages, tools, signal, pace } = options;
  const specs = tools.map((tool) => tool.spec);
  session.ledger.appendPrompt(await pace.run(conversation.openingSteps(messages, specs)));
  const progress = { lastText: '', malformedTurns: 0, compactedAt: 0 };
  try {
    for (;;) {
      const stop = await runTurn(options, progress);
      if (stop) return stop;
    }
  } catch (error) {
    if (!(signal.reason instanceof Expired)) throw error;
    return { stopReason: 'rollout_timeout', answer: progress.lastText };
  }
}

interface Progress {
  lastText: string;
  malformedTurns: number;
  /** The turns that there were when the history was last compacted: without a turn since then it is not tried again. */
  compactedAt: number;
}

async function runTurn(options: AgentOptions, progress: Progress): Promise<AgentStop | undefined> {
  const { tally, limits, clock = systemClock } = options;
  const { ledger } = options.session;
  const stop = (stopReason: StopReason, answer = progress.lastText) => ({ stopReason, answer });
  if (tally.turns >= limits.max_turns) return stop('max_turns');
  const startedAt = clock.monotonic();
  const sampled = await sampleTurn(options);
  if (!sampled) return (await compact(options, progress, [])) ? undefined : stop('context_overflow');
  const modelMs = clock.monotonic() - startedAt;
  tally.modelMs += modelMs;
  progress.lastText = sampled.content;

  const actedAt = clock.monotonic();
  const acted = await act(options, sampled.calls);
  const toolMs = clock.monotonic() - actedAt;
  tally.toolMs += toolMs;
  const calls = sampled.calls.map((call) => call.name);
  options.onTurn?.({ turn: tally.turns, sampledTokens: sampled.tokens, contextTokens: ledger.length, modelMs, toolMs, calls });

  if (acted.finish !== undefined) return stop('tool_stopped', acted.finish);
  progress.malformedTurns = sampled.malformed.length > 0 && sampled.calls.length === 0 ? progress.malformedTurns + 1 : 0;
  if (progress.malformedTurns >= maxMalformedTurns) return stop('parse_error');
  const answers = [...acted.answers, ...answerMalformed(sampled.malformed)];
  if (answers.length > 0)
    return (await appendAnswers(options, answers)) || (await compact(options, progress, answers)) ? undefined : stop('context_overflow');
  if (sampled.cut && ledger.length >= limits.max_context_tokens && (await compact(options, progress, []))) return undefined;
  if (sampled.cut) return stop(ledger.length >= limits.max_context_tokens ? 'context_overflow' : 'max_tokens');
  return stop('completed');
}

/** Samples one turn and puts it into the ledger, with what it says beside it. Undefined when the context is full. */
async function sampleTurn({ session, conversation, tools, sampling, limits, tally, signal, pace }: AgentOptions) {
  const { ledger } = session;
  const maxTokens = chooseTurnTokens(ledger.length, limits, sampling);
  if (maxTokens === 0) return undefined;
  const parts: Int32Array[] = [];
  const decode = (ids: Int32Array) => pace.run(conversation.decodeSteps(ids));
  const onPart = async (part: SampledTurn) => {
    parts.push(part.tokenIds);
    ledger.appendSampled({ ...part, text: await decode(part.tokenIds), messages: [] });
  };
  const request = { sampling, maxTokens, stopTokenIds: conversation.stopTokenIds, signal, onPart };
  const last = await session.sample(request).catch(passContextLength);
  if (!last) return undefined;
  tally.turns += 1;
  // Read as one: a call or a character may begin in one part and end in the next.
  const tokenIds = parts.length === 0 ? last.tokenIds : Int32Array.from([...parts, last.tokenIds].flatMap((part) => [...part]));
  const text = await decode(tokenIds);
  const specs = tools.map((tool) => tool.spec);
  const { content, calls, malformed } = conversation.parseTurn(text, specs);
  tally.malformedCalls += malformed.length;
  const said: Message = { role: 'assistant', content, ...(calls.length > 0 ? { tool_calls: calls } : {}) };
  ledger.appendSampled({ ...last, text: parts.length === 0 ? text : await decode(last.tokenIds), messages: [said] });
  return { content, calls, malformed, tokens: tokenIds.length, cut: last.finishReason === 'length' };
}

/** The server's context may be smaller than the rollout's limit: the context is full all the same. */
function passContextLength(error: unknown): undefined {
  if (error instanceof RolloutError && error.code === 'backend-refused' && error.details?.reason === 'context-length') return undefined;
  throw error;
}

/** Runs the calls in order; `finish` ends it, and what was asked after it is not done. */
async function act(options: AgentOptions, calls: readonly ToolCall[]): Promise<{ answers: Message[]; finish?: string }> {
  const answers: Message[] = [];
  for (const call of calls) {
    const tool = options.tools.find((candidate) => candidate.spec.name === call.name);
    if (!tool) {
      answers.push(answerCall(call, `there is no tool ${JSON.stringify(call.name)}; ${describeTools(options.tools)}`));
      continue;
    }
    const { sandbox, limits, signal } = options;
    const answer = await tool.run(call.arguments, { timeoutMs: limits.tool_timeout_s * 1000, signal, ...(sandbox ? { sandbox } : {}) });
    if (answer.kind === 'finish') return { answers, finish: answer.answer };
    answers.push(answerCall(call, answer.text));
  }
  return { answers };
}

/** Cut where they must be. False when not even that fits into what is left of the context: then nothing is appended. */
async function appendAnswers(options: AgentOptions, answers: readonly Message[]): Promise<boolean> {
  const { session, conversation, limits, pace } = options;
  const { ledger } = session;
  const { endOfTurn } = conversation;
  const isOwed = ledger.segments.at(-1)?.tokenIds.at(-1) !== endOfTurn.id;
  const room = chooseAnswerRoom(ledger.length + (isOwed ? endOfTurn.tokenIds.length : 0), limits);
  const delta = await pace.run(fitAnswers(conversation, answers, room));
  if (!delta) return false;
  if (isOwed) ledger.appendInserted(endOfTurn);
  ledger.appendObservation(delta);
  return true;
}

/** False when there is nobody to ask, or when what is answered does not fit either. */
async function compact(options: AgentOptions, progress: Progress, answers: readonly Message[]): Promise<boolean> {
  const { session, conversation, limits, tools, tally, pace } = options;
  const { ledger } = session;
  if (!options.compact || progress.compactedAt === tally.turns) return false;
  progress.compactedAt = tally.turns;
  const messages = await options.compact([...ledger.messages, ...answers]);
  if (!messages) return false;
  const specs = tools.map((tool) => tool.spec);
  const next = await pace.run(renderNext(ledger, conversation, { messages, tools: specs }));
  if (!next || chooseAnswerRoom(next.contextTokens, limits) < 0) return false;
  appendNext(ledger, conversation, next);
  return true;
}

function answerCall(call: ToolCall, content: string): Message {
  return { role: 'tool', content, tool_call_id: call.id, name: call.name };
}

/** Most unreadable calls of one turn that are answered one by one. */
const mostMalformed = 4;

function answerMalformed(problems: readonly string[]): Message[] {
  const told = problems.slice(0, mostMalformed).map((problem) => `That call could not be read: ${problem}`);
  if (problems.length > mostMalformed) told.push(`${problems.length - mostMalformed} more calls could not be read either.`);
  return told.map((content) => ({ role: 'tool', content }));
}

function describeTools(tools: readonly Tool[]): string {
  return tools.length === 0 ? 'this task has none' : `there are: ${tools.map((tool) => tool.spec.name).join(', ')}`;
}
