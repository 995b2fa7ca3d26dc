// The turn loop: sample, parse, run tools, append, until the agent stops. The model's next context is always its previous context, plus
// what it sampled, plus the new messages. The ledger joins them; nothing is rendered twice.

import { isDeepStrictEqual } from 'node:util';
import { Expired } from '@millrace/base/deadline';
import { inSpan } from '@millrace/base/trace-span';
import { appendNext, chooseResultRoom, fitResults, renderNext, renderResults } from '@millrace/model';
import {
  definedOf,
  type Message,
  RolloutError,
  type Sampling,
  type SamplingInput,
  type StopReason,
  type ToolCall,
} from '@millrace/protocol';
import type { AgentEnd, Tool } from '@millrace/scenarios';
import { toToolSpan, toTurnSpan } from '../inference/span-names.ts';
import type { AgentOptions } from './agent-options.ts';
import type { LoopProgress } from './loop-progress.ts';
import { sampleTurn, type TakenTurn } from './sample-turn.ts';
import { toTurnSampling } from './turn-sampling.ts';

/** The agent is stopped after this many turns in a row whose calls are all malformed. */
const maxMalformedTurns = 3;

/** Runs until the agent ends. An expired deadline is an end too; the reason of any other abort is thrown. */
export async function runTurns(options: AgentOptions): Promise<AgentEnd> {
  const { signal, tally } = options;
  const progress = options.continued ?? (await begin(options));
  try {
    for (;;) {
      const { turns } = tally;
      if (turns >= options.limits.max_turns) return { stopReason: 'max_turns', answer: progress.lastText };
      const turn = options.span?.begin(toTurnSpan(turns + 1));
      const stop = await inSpan(turn, (span) => runTurn({ ...options, ...definedOf({ span }) }, progress));
      if (stop) return stop;
      if (tally.turns > turns) await options.onBoundary?.(progress);
    }
  } catch (error) {
    if (!(signal.reason instanceof Expired)) throw error;
    return { stopReason: 'rollout_timeout', answer: progress.lastText };
  }
}

async function begin(options: AgentOptions): Promise<LoopProgress> {
  const { sampler, conversation, messages, tools, pace } = options;
  const specs = tools.map((tool) => tool.spec);
  sampler.ledger.appendPrompt(await pace.run(conversation.openingSteps(messages, specs)));
  const plan = { sampling: toTurnSampling(options.sampling, options.openingSampling, 'run-failed'), openText: '' };
  return { lastText: '', malformedTurns: 0, compactedAt: 0, lastCalls: [], repeats: 0, plan };
}

async function runTurn(options: AgentOptions, progress: LoopProgress): Promise<AgentEnd | undefined> {
  const { tally, limits, clock } = options;
  const { ledger } = options.sampler;
  const stop = (stopReason: StopReason, answer = progress.lastText) => ({ stopReason, answer });
  const startedAt = clock.monotonic();
  const sampled = await sampleTurn(options, progress.plan);
  if (!sampled) return (await compact(options, progress, [])) ? undefined : stop('context_overflow');
  const modelMs = clock.monotonic() - startedAt;
  tally.modelMs += modelMs;
  progress.lastText = sampled.content;

  countRepeats(progress, sampled.calls);
  const isLoop = limits.max_repeated_calls !== undefined && progress.repeats >= limits.max_repeated_calls;
  const calledAt = clock.monotonic();
  // The calls that make it a loop are not run.
  const called: CalledTools = isLoop ? { results: [] } : await react(options, sampled);
  const toolMs = clock.monotonic() - calledAt;
  tally.toolMs += toolMs;
  const calls = sampled.calls.map((call) => call.name);
  const { repeats } = progress;
  options.onTurn?.({ turn: tally.turns, sampledTokens: sampled.tokens, contextTokens: ledger.length, modelMs, toolMs, calls, repeats });

  if (isLoop) return stop('loop');
  if (called.finish !== undefined) return stop(sampled.calls.length > 0 ? 'tool_stopped' : 'completed', called.finish);
  progress.malformedTurns = sampled.malformed.length > 0 && sampled.calls.length === 0 ? progress.malformedTurns + 1 : 0;
  if (progress.malformedTurns >= maxMalformedTurns) return stop('parse_error');
  progress.plan = { openText: '', sampling: sampleNext(options, progress.plan, called) };
  if (called.append !== undefined)
    return (await appendText(options, progress, { said: sampled.wholeText, text: called.append })) ? undefined : stop('context_overflow');
  const results = [...called.results, ...describeMalformed(sampled.malformed)];
  if (results.length > 0)
    return (await appendResults(options, results)) || (await compact(options, progress, results)) ? undefined : stop('context_overflow');
  if (sampled.cut && ledger.length >= limits.max_context_tokens && (await compact(options, progress, []))) return undefined;
  if (sampled.cut) return stop(ledger.length >= limits.max_context_tokens ? 'context_overflow' : 'max_tokens');
  return stop('completed');
}

/** A turn without calls ends a series. */
function countRepeats(progress: LoopProgress, calls: readonly ToolCall[]): void {
  const made = calls.map(({ name, arguments: given }) => ({ name, arguments: given }));
  const isSame = made.length > 0 && isDeepStrictEqual(made, progress.lastCalls);
  progress.repeats = isSame ? progress.repeats + 1 : Math.min(1, made.length);
  progress.lastCalls = made;
}

interface CalledTools {
  readonly results: Message[];
  /** The answer of a tool that ends the agent's part. */
  readonly finish?: string;
  /** What the agent's own turn continues with. */
  readonly append?: string;
  readonly sampling?: SamplingInput;
}

/** Runs the calls of a turn. A turn without any is answered by the scenario, unless it was cut off or is about to be called malformed. */
async function react(options: AgentOptions, sampled: TakenTurn): Promise<CalledTools> {
  const { respond, sandbox, limits, signal, tally } = options;
  if (!respond || sampled.calls.length > 0 || sampled.malformed.length > 0 || sampled.cut) return runCalls(options, sampled.calls);
  const context = { timeoutMs: limits.tool_timeout_s * 1000, signal, ...definedOf({ sandbox }) };
  const { content: text, stoppedBy } = sampled;
  const reply = await respond({ text, number: tally.turns, ...definedOf({ stoppedBy }) }, context);
  if ('finish' in reply) return { results: [], finish: reply.finish };
  const { sampling } = reply;
  const more = definedOf({ sampling });
  return 'append' in reply ? { results: [], append: reply.append, ...more } : { results: [...reply.messages], ...more };
}

function sampleNext({ sampling }: AgentOptions, plan: LoopProgress['plan'], called: CalledTools): Sampling {
  return called.sampling ? toTurnSampling(sampling, called.sampling, 'run-failed') : plan.sampling;
}

/** Appends text to the agent's own turn, shortened if necessary. False, with nothing appended, when not even that fits. */
async function appendText(
  options: AgentOptions,
  progress: LoopProgress,
  { said, text }: { readonly said: string; readonly text: string },
): Promise<boolean> {
  const { sampler, conversation, limits, pace } = options;
  const { ledger } = sampler;
  if (conversation.stopTokenIds.includes(ledger.segments.at(-1)?.tokenIds.at(-1) ?? -1))
    throw new RolloutError(
      'run-failed',
      "the scenario appends to a turn that has ended with the model's end of turn; return messages, or finish",
    );
  const { tokenizer } = conversation;
  const render = function* ([one]: readonly Message[]) {
    const content = one?.content ?? '';
    const tokenIds = yield* tokenizer.encodeSteps([{ text: content, trusted: false }], { isContinued: true });
    return { tokenIds, text: content, messages: [] };
  };
  const fitted = await pace.run(
    fitResults(conversation, [{ role: 'user', content: text }], { render, room: chooseResultRoom(ledger.length, limits) }),
  );
  if (!fitted) return false;
  const content = said + fitted.text;
  progress.plan = { ...progress.plan, openText: content };
  ledger.appendContinuation({ ...fitted, messages: [{ role: 'assistant', content }] });
  return true;
}

/** Runs the calls in order. `finish` ends the agent's part, and later calls of the turn are not run. */
async function runCalls(options: AgentOptions, calls: readonly ToolCall[]): Promise<CalledTools> {
  const { sandbox, limits, signal } = options;
  const context = { timeoutMs: limits.tool_timeout_s * 1000, signal, ...definedOf({ sandbox }) };
  const results: Message[] = [];
  for (const call of calls) {
    const tool = options.tools.find((candidate) => candidate.spec.name === call.name);
    if (!tool) {
      results.push(toResult(call, `there is no tool ${JSON.stringify(call.name)}; ${describeTools(options.tools)}`));
      continue;
    }
    const result = await inSpan(options.span?.begin(toToolSpan(call)), () => tool.run(call.arguments, context));
    if (result.kind === 'finish') return { results, finish: result.answer };
    results.push(toResult(call, result.text));
  }
  return { results };
}

/** Appends the results, shortened if necessary. False, with nothing appended, when not even that fits into the context. */
async function appendResults(options: AgentOptions, results: readonly Message[]): Promise<boolean> {
  const { sampler, conversation, limits, pace } = options;
  const { ledger } = sampler;
  const specs = options.tools.map((tool) => tool.spec);
  const next = await pace.run(renderResults(ledger, conversation, { messages: results, tools: specs, limits }));
  if (!next) return false;
  appendNext(ledger, conversation, next);
  return true;
}

/** Continues with a compacted history. False without a `compact` hook, or when what it returns does not fit either. */
async function compact(options: AgentOptions, progress: LoopProgress, results: readonly Message[]): Promise<boolean> {
  const { sampler, conversation, limits, tools, tally, pace } = options;
  const { ledger } = sampler;
  if (!options.compact || progress.compactedAt === tally.turns) return false;
  progress.compactedAt = tally.turns;
  const messages = await options.compact([...ledger.messages, ...results]);
  if (!messages) return false;
  const specs = tools.map((tool) => tool.spec);
  const next = await pace.run(renderNext(ledger, conversation, { messages, tools: specs }));
  if (!next || chooseResultRoom(next.contextTokens, limits) < 0) return false;
  appendNext(ledger, conversation, next);
  return true;
}

function toResult(call: ToolCall, content: string): Message {
  return { role: 'tool', content, tool_call_id: call.id, name: call.name };
}

/** How many malformed calls of one turn get a message each; the rest share one. */
const maxMalformedMessages = 4;

function describeMalformed(problems: readonly string[]): Message[] {
  const contents = problems.slice(0, maxMalformedMessages).map((problem) => `That call could not be read: ${problem}`);
  const left = problems.length - contents.length;
  if (left > 0) contents.push(`${left} more calls could not be read either.`);
  return contents.map((content) => ({ role: 'tool', content }));
}

function describeTools(tools: readonly Tool[]): string {
  return tools.length === 0 ? 'this task has none' : `there are: ${tools.map((tool) => tool.spec.name).join(', ')}`;
}
