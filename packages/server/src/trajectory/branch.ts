// Messages that do not continue the current ones start a new branch, with its own prompt, rendered from the start. Earlier branches
// stay in the trajectory as they were sampled; nothing is ever spliced.

import { isDeepStrictEqual } from 'node:util';
import type { Limits, Message, ToolSpec } from '@millrace/protocol';
import type { Steps } from '../base/pace.ts';
import { chooseResultRoom, fitResults } from './budget.ts';
import type { Conversation, RenderedMessages } from './conversation.ts';
import type { Ledger } from './ledger.ts';

/** What must be appended so that the context holds `messages`, and how long the context is then. */
export interface NextPrompt {
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
  const rendered = yield* conversation.deltaSteps(added);
  const owed = owedTokens(ledger, conversation);
  return { kind: 'delta', rendered, contextTokens: ledger.length + owed + rendered.tokenIds.length };
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
export function owedTokens(ledger: Ledger, { endOfTurn }: Pick<Conversation, 'endOfTurn'>): number {
  return isTurnEnded(ledger, { endOfTurn }) ? 0 : endOfTurn.tokenIds.length;
}

/**
 * The current messages and the new ones, without reasoning and shortened if necessary, for a template that drops the reasoning of
 * earlier turns. Undefined if nothing is dropped, or if the history cannot be rendered again: then the ledger only appends.
 */
export function* renderWithoutReasoning(
  ledger: Ledger,
  conversation: Conversation,
  { messages, tools, limits }: { readonly messages: readonly Message[]; readonly tools: readonly ToolSpec[]; readonly limits: Limits },
): Steps<RenderedMessages | undefined> {
  if (!ledger.hasReasoning) return undefined;
  const current = ledger.messages;
  const last = current.findLast(({ role }) => role === 'assistant');
  if (!last || conversation.keepsReasoning(last, messages)) return undefined;
  const past = current.map(({ reasoning: _, ...rest }): Message => rest);
  if (findSpelled(ledger, conversation, past)) return undefined;
  const whole = yield* conversation.openingSteps([...past, ...messages], tools);
  if (chooseResultRoom(whole.tokenIds.length, limits) >= 0) return whole;
  const { tokenIds } = yield* conversation.deltaSteps(messages);
  const room = chooseResultRoom(whole.tokenIds.length - tokenIds.length, limits);
  const fitted = yield* fitResults(conversation, messages, room);
  return fitted && (yield* conversation.openingSteps([...past, ...fitted.messages], tools));
}

function findSpelled(ledger: Ledger, { tokenizer }: Conversation, messages: readonly Message[]): Message | undefined {
  const own = ledger.segments[0]?.messages ?? [];
  return messages.find((message) => {
    if (message.role !== 'assistant' || own.some((mine) => isDeepStrictEqual(mine, message))) return false;
    const text = JSON.stringify(message);
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
