// Messages that do not continue the current ones start a new branch, with its own prompt, rendered from the start. Earlier branches
// stay in the trajectory as they were sampled; nothing is ever spliced.

import { isDeepStrictEqual } from 'node:util';
import type { Steps } from '@millrace/base/pace';
import type { Limits, Message, ToolSpec } from '@millrace/protocol';
import type { Conversation, RenderedMessages } from '../conversation.ts';
import { doesRender } from '../template/template-delta.ts';
import type { Past } from '../template/template-pasts.ts';
import { chooseResultRoom, fitResults, type ResultFrame } from './budget.ts';
import type { Ledger } from './ledger.ts';

/** What must be appended so that the context holds `messages`, and how long the context is then. */
interface NextPrompt {
  readonly kind: 'delta' | 'branch';
  readonly rendered: RenderedMessages;
  readonly contextTokens: number;
}

/**
 * Undefined if nothing is new, and if a new branch would turn text that the policy wrote into a control token: assistant messages in
 * an opening are trusted because the scenario wrote them, and these are not.
 */
export function* renderNext(
  ledger: Ledger,
  conversation: Conversation,
  { messages, tools }: { readonly messages: readonly Message[]; readonly tools: readonly ToolSpec[] },
): Steps<NextPrompt | undefined> {
  const current = ledger.messages;
  const isContinued = isDeepStrictEqual(messages.slice(0, current.length), current) && current.at(-1)?.role === 'assistant';
  if (!isContinued) {
    if (ledger.length > 0 && isDeepStrictEqual(messages, current)) return undefined;
    if (ledger.length > 0 && findSpelled(ledger, conversation, messages)) return undefined;
    const rendered = yield* conversation.openingSteps(messages, tools);
    return { kind: 'branch', rendered, contextTokens: rendered.tokenIds.length };
  }
  const added = messages.slice(current.length);
  if (added.length === 0) return undefined;
  return yield* renderResults(ledger, conversation, { messages: added, tools, limits: { max_context_tokens: Infinity } });
}

export function appendNext(ledger: Ledger, { endOfTurn }: Pick<Conversation, 'endOfTurn'>, { kind, rendered }: NextPrompt): void {
  if (kind === 'branch') {
    if (ledger.length === 0) ledger.appendPrompt(rendered);
    else ledger.beginBranch(rendered);
    return;
  }
  appendDelta(ledger, { endOfTurn }, rendered);
}

/** Appends what follows a turn: its end, if the policy did not sample one, and the new messages. */
export function appendDelta(ledger: Ledger, { endOfTurn }: Pick<Conversation, 'endOfTurn'>, rendered: RenderedMessages): void {
  const isEnded = isTurnEnded(ledger, { endOfTurn });
  if (!isEnded && endOfTurn.tokenIds.length > 0) ledger.appendInserted(endOfTurn);
  const isWritten = isEnded && endOfTurn.isShared && rendered.tokenIds[0] === lastToken(ledger);
  ledger.appendObservation(isWritten ? { ...rendered, tokenIds: rendered.tokenIds.subarray(1) } : rendered);
}

/** How many tokens must be inserted to end the last turn. */
function owedTokens(ledger: Ledger, { endOfTurn }: Pick<Conversation, 'endOfTurn'>): number {
  return isTurnEnded(ledger, { endOfTurn }) ? 0 : endOfTurn.tokenIds.length;
}

/**
 * How these results follow the last turn, shortened if necessary: appended, or, where the template then writes what is before them
 * differently, as a new branch. That is so for reasoning that it drops. Undefined if they do not fit.
 */
export function* renderResults(
  ledger: Ledger,
  conversation: Conversation,
  {
    messages,
    tools,
    limits,
  }: { readonly messages: readonly Message[]; readonly tools: readonly ToolSpec[]; readonly limits: Pick<Limits, 'max_context_tokens'> },
): Steps<NextPrompt | undefined> {
  const past = { messages: ledger.messages, tools };
  const again = isAppended(ledger, conversation, { past, messages })
    ? undefined
    : yield* findOpening(ledger, conversation, { past, messages });
  if (again) {
    const rendered = yield* fitResults(conversation, messages, { render: again, room: chooseResultRoom(0, limits) });
    return rendered && { kind: 'branch', rendered, contextTokens: rendered.tokenIds.length };
  }
  const used = ledger.length + owedTokens(ledger, conversation);
  const render = (results: readonly Message[]) => conversation.deltaSteps(results, past);
  const rendered = yield* fitResults(conversation, messages, { render, room: chooseResultRoom(used, limits) });
  return rendered && { kind: 'delta', rendered, contextTokens: used + rendered.tokenIds.length };
}

interface Continuation {
  readonly past: Past;
  readonly messages: readonly Message[];
}

function isAppended(ledger: Ledger, conversation: Conversation, { past, messages }: Continuation): boolean {
  const last = past.messages.findLast(({ role }) => role === 'assistant');
  const hasEarlier = ledger.thoughts > (last?.reasoning === undefined ? 0 : 1);
  if (ledger.thoughts > 0 && last && !conversation.keepsReasoning(last, messages, hasEarlier)) return false;
  return conversation.isAppended(messages, past);
}

/** Renders the past with other new messages; undefined if it spells a control token, so that it can only be kept as it was sampled. */
function* findOpening(
  ledger: Ledger,
  conversation: Conversation,
  { past, messages }: Continuation,
): Steps<ResultFrame['render'] | undefined> {
  const written = withHarmlessReasoning(past.messages, conversation);
  if (findSpelled(ledger, conversation, written)) return undefined;
  const open = (history: readonly Message[], results: readonly Message[]) =>
    conversation.openingSteps([...history, ...results], past.tools);
  if (!doesRender(() => open(written, messages).next())) return undefined; // the template drops a message that it wrote before
  if (written !== past.messages && (yield* open(written, messages)).text.includes(dropped)) return undefined;
  return function* (results) {
    return { ...(yield* open(written, results)), messages: [...past.messages, ...results] };
  };
}

/** A word that no template writes on its own. */
const dropped = 'thought8e006';

/** A template that drops reasoning does not look at it, so what spells a control token may be another word for it. */
function withHarmlessReasoning(messages: readonly Message[], { tokenizer }: Conversation): readonly Message[] {
  const isSpelled = ({ reasoning = '' }: Message) => tokenizer.controlTokens.some((token) => reasoning.includes(token));
  if (!messages.some(isSpelled)) return messages;
  return messages.map((message) => (isSpelled(message) ? { ...message, reasoning: dropped } : message));
}

/** The first message with a control token that the policy wrote: in its turns, or in the id of a call that a result repeats. */
function findSpelled(ledger: Ledger, { tokenizer }: Conversation, messages: readonly Message[]): Message | undefined {
  const own = ledger.segments[0]?.messages ?? [];
  return messages.find((message) => {
    if (own.some((mine) => isDeepStrictEqual(mine, message))) return false;
    const text = message.role === 'assistant' ? JSON.stringify(message) : (message.tool_call_id ?? '');
    return tokenizer.controlTokens.some((token) => text.includes(token));
  });
}

function isTurnEnded(ledger: Ledger, { endOfTurn }: Pick<Conversation, 'endOfTurn'>): boolean {
  const last = lastToken(ledger);
  return last !== undefined && endOfTurn.ids.includes(last);
}

function lastToken(ledger: Ledger): number | undefined {
  return ledger.segments.at(-1)?.tokenIds.at(-1);
}
