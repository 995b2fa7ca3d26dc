// How a template ends an assistant's turn: with a control token of its own, after text and after calls, or with nothing. In the second case
// the first token of the next message ends the turn (GLM, Gemma 4). Some write their own token only when a message follows (Apriel 1.6).

import type { Message, ToolSpec } from '@millrace/protocol';
import { answer, type Past, shortPast, withCalls } from './template-pasts.ts';
import type { Skeleton } from './template-skeleton.ts';

export interface TurnEnds {
  /** What is inserted when a turn was cut off before its end: '' if turns have no end of their own. */
  readonly text: string;
  /** Every token that ends a turn, after text or after calls. */
  readonly all: readonly string[];
  /** Whether the token that ends a turn is the first one of the next message. */
  readonly isShared: boolean;
}

export type Render = (messages: readonly Message[], tools?: readonly ToolSpec[], addsPrompt?: boolean) => Skeleton;

const result: Message = { role: 'tool', content: 'output', name: 'bash', tool_call_id: 'call00000' };

/** `eosTokens` end a text according to the model's files; `controlTokens` are all control tokens of its vocabulary. */
export function findTurnEnds(
  render: Render,
  { eosTokens, controlTokens }: { eosTokens: readonly string[]; controlTokens: readonly string[] },
): TurnEnds {
  const tokens = [...new Set([...eosTokens, ...controlTokens])];
  const tail = tailOf(render, shortPast, []);
  const followed = attemptTail(render, shortPast, [{ role: 'user', content: 'more' }]) ?? tail;
  const stays = (token: string) => followed.includes(token); // some templates write an end of text only after the last message
  const own = firstToken(tail, eosTokens.filter(stays)) ?? firstToken(tail, tokens.filter(stays));
  if (own === undefined) return findLater(render, tokens) ?? findShared(render, tokens);
  const afterCalls = findAfterCalls(render, { own, tokens, eosTokens });
  return { text: own, all: afterCalls === undefined || afterCalls === own ? [own] : [own, afterCalls], isShared: false };
}

/** An own end that is written only before another message: the same after text and after calls, and the message has a token too. */
function findLater(render: Render, tokens: readonly string[]): TurnEnds | undefined {
  const next = tailOf(render, shortPast, [{ role: 'user', content: 'more' }]);
  const end = firstToken(next, tokens);
  const results = attemptTail(render, withCalls(shortPast, [result]), [result]) ?? next;
  if (end === undefined || next.slice(0, next.indexOf(end)).trim() !== '') return undefined;
  const isFollowed = (text: string) => text.includes(end) && firstToken(text.slice(text.indexOf(end) + end.length), tokens) !== undefined;
  return isFollowed(next) && isFollowed(results) ? { text: end, all: [end], isShared: false } : undefined;
}

function findShared(render: Render, tokens: readonly string[]): TurnEnds {
  const next = tailOf(render, shortPast, [{ role: 'user', content: 'more' }]);
  const first = firstToken(next, tokens);
  if (first === undefined || next.slice(0, next.indexOf(first)).trim() !== '')
    throw new Error(`an assistant's turn does not end with a control token, but with ${JSON.stringify(next.slice(0, 80))}`);
  const results = attemptTail(render, withCalls(shortPast, [result]), [result]);
  const closing = attemptTail(render, withCalls(shortPast, [result]), []);
  const afterCalls = results === undefined ? undefined : firstToken(results.slice((closing ?? '').trimEnd().length), tokens);
  return { text: '', all: [...new Set([first, ...(afterCalls === undefined ? [] : [afterCalls])])], isShared: true };
}

/** The end after a call, if it differs: the last control token after it that ends a text, or that nothing follows. */
function findAfterCalls(
  render: Render,
  { own, tokens, eosTokens }: { own: string; tokens: readonly string[]; eosTokens: readonly string[] },
): string | undefined {
  const tail = attemptTail(render, withCalls(shortPast, [result]), []);
  if (tail === undefined || tail.includes(own)) return undefined;
  const ended = tokens.filter((token) => tail.trimEnd().endsWith(token)).sort((a, b) => b.length - a.length);
  return ended.find((token) => eosTokens.includes(token)) ?? ended[0];
}

function attemptTail(render: Render, past: Past, more: readonly Message[]): string | undefined {
  try {
    return tailOf(render, past, more);
  } catch {
    return undefined; // a template may refuse calls
  }
}

/** The text of the template after the last `answer`, up to the next text of a user or tool. */
function tailOf(render: Render, past: Past, more: readonly Message[]): string {
  const skeleton = render([...past.messages, ...more], past.tools, false);
  const piece = skeleton.findLast((one) => 'text' in one && one.text.includes(answer));
  if (!piece || !('text' in piece)) throw new Error("it does not write an assistant's turn");
  return piece.text.slice(piece.text.lastIndexOf(answer) + answer.length);
}

/** The longest one wins where several start at the same place. */
function firstToken(tail: string, tokens: readonly string[]): string | undefined {
  const found = tokens
    .map((token) => ({ token, at: tail.indexOf(token) }))
    .filter(({ at }) => at >= 0)
    .sort((a, b) => a.at - b.at || b.token.length - a.token.length);
  return found[0]?.token;
}
