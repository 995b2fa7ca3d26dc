// One turn of the agent: sampled, appended to the ledger with its text and message, and read. What the scenario reads of it ends at the
// stop string; the ledger keeps every token as it was sampled.

import { chooseTurnTokens } from '@millrace/model';
import { definedOf, type Message, RolloutError, type Sampling, type StoppedBy, type ToolCall } from '@millrace/protocol';
import type { SampledTurn, TurnRequest } from '../inference/sampled-turn.ts';
import type { AgentOptions } from './agent-options.ts';
import { findStopString } from './stop-string.ts';

/** How the next turn is sampled. */
interface TurnPlan {
  readonly sampling: Sampling;
  /** What the agent's message has already, if the turn continues one. */
  readonly openText: string;
  /** Receives the tokens as they are sampled, where the backend streams. */
  readonly onTokens?: TurnRequest['onTokens'];
}

/** What a turn needs of the agent. */
type TurnOptions = Pick<AgentOptions, 'sampler' | 'conversation' | 'limits' | 'tally' | 'signal' | 'pace' | 'span'> & {
  readonly tools: readonly Pick<AgentOptions['tools'][number], 'spec'>[];
};

export interface TakenTurn {
  /** What the scenario reads of it. */
  readonly content: string;
  readonly calls: readonly ToolCall[];
  readonly malformed: readonly string[];
  readonly tokens: number;
  /** Whether the turn reached its token limit. */
  readonly cut: boolean;
  readonly stoppedBy?: StoppedBy;
  /** All text of the agent's message so far. */
  readonly wholeText: string;
  /** As the ledger has it. */
  readonly message: Message;
  readonly cachedTokens?: number;
}

/** Undefined when the context is full. */
export async function sampleTurn(options: TurnOptions, { sampling, openText, onTokens }: TurnPlan): Promise<TakenTurn | undefined> {
  const { sampler, conversation, tools, limits, tally, signal, pace, span } = options;
  const { ledger } = sampler;
  const maxTokens = chooseTurnTokens(ledger.length, limits, sampling);
  if (maxTokens === 0) return undefined;
  const parts: Int32Array[] = [];
  const decode = (ids: Int32Array) => pace.run(conversation.decodeSteps(ids));
  const onPart = async (part: SampledTurn) => {
    parts.push(part.tokenIds);
    ledger.appendSampled({ ...part, text: await decode(part.tokenIds), messages: [] });
  };
  const specs = tools.map((tool) => tool.spec);
  const request: TurnRequest = {
    sampling,
    maxTokens,
    stopTokenIds: [...new Set([...conversation.stopTokenIds, ...(sampling.stop_token_ids ?? [])])],
    signal,
    onPart,
    findStop: (ids) => findStopString(ids, sampling, decode),
    chat: () => ({ messages: ledger.messages, tools: specs }),
    ...definedOf({ onTokens, span }),
  };
  const last = await sampler.sample(request).catch(passContextLength);
  if (!last) return undefined;
  tally.turns += 1;
  // Decode all parts as one: a call or a character may start in one part and end in the next.
  const tokenIds = parts.length === 0 ? last.tokenIds : Int32Array.from([...parts, last.tokenIds].flatMap((part) => [...part]));
  const text = await decode(tokenIds);
  const isContinued = openText !== '';
  const parsed = await conversation.readTurn(text, specs, { signal, isContinued });
  const { content, reasoning, calls } = parsed;
  const cut = last.finishReason === 'length';
  // A turn that was cut before its end is not malformed, and without tools there is no call to read.
  const malformed = tools.length === 0 || (cut && calls.length === 0) ? [] : parsed.malformed;
  tally.malformedCalls += malformed.length;
  const wholeText = openText + text;
  const tool_calls = calls.length > 0 ? calls : undefined;
  // The message of a turn that was continued is its text as it is: reasoning in it may have begun in any part.
  const said: Message = isContinued
    ? { role: 'assistant', content: tool_calls ? openText + content : wholeText, ...definedOf({ tool_calls }) }
    : { role: 'assistant', content, ...definedOf({ reasoning, tool_calls }) };
  ledger.appendSampled({ ...last, text: parts.length === 0 ? text : await decode(last.tokenIds), messages: [said] });
  const shown = await showText({ text, content, decodeLast: () => decode(last.tokenIds.subarray(-1)) }, last.stoppedBy, sampling);
  const more = definedOf({ stoppedBy: last.stoppedBy, cachedTokens: last.cachedTokens });
  return { content: shown, calls, malformed, tokens: tokenIds.length, cut, wholeText, message: said, ...more };
}

/** The content without what stopped the turn, or up to it. A stop string inside the reasoning is only in the whole text. */
async function showText(
  { text, content, decodeLast }: { readonly text: string; readonly content: string; decodeLast(): Promise<string> },
  stoppedBy: StoppedBy | undefined,
  { stop_token_ids = [], include_stop_str_in_output: isIncluded = false }: Sampling,
): Promise<string> {
  if (typeof stoppedBy === 'string') {
    const source = content.includes(stoppedBy) ? content : text;
    const at = source.lastIndexOf(stoppedBy);
    return at < 0 ? content : source.slice(0, isIncluded ? at + stoppedBy.length : at);
  }
  if (stoppedBy === undefined || isIncluded || !stop_token_ids.includes(stoppedBy)) return content;
  const lastToken = await decodeLast();
  return lastToken !== '' && content.endsWith(lastToken) ? content.slice(0, -lastToken.length) : content;
}

/** The server's context may be smaller than the rollout's limit; then the context is full too. */
function passContextLength(error: unknown): undefined {
  if (error instanceof RolloutError && error.code === 'backend-refused' && error.details?.reason === 'context-length') return undefined;
  throw error;
}
