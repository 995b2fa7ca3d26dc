// The context budget: how long a turn may be, and what tool answers are cut to so that they and one more turn still fit. What
// is cut says so in the text, in the middle, where it is missing.

import type { Limits, Message, Sampling } from '@millrace/protocol';
import type { Steps } from '../base/pace.ts';
import type { Conversation, RenderedMessages } from './conversation.ts';

/** The most tokens that the next turn may sample; 0 when the context is full. */
export function chooseTurnTokens(used: number, limits: Pick<Limits, 'max_context_tokens'>, sampling: Pick<Sampling, 'max_tokens'>): number {
  return Math.max(0, Math.min(sampling.max_tokens, limits.max_context_tokens - used));
}

/** What answers may take: they leave room for a turn in which something can still be said. */
export function chooseAnswerRoom(used: number, { max_context_tokens: most }: Pick<Limits, 'max_context_tokens'>): number {
  const minTurn = Math.min(256, Math.ceil(most / 16));
  return most - used - minTurn;
}

/** Fewer tokens of an answer are not worth a turn. */
const minShare = 64;

/**
 * Fair shares: what needs little gets all of it, and the rest is divided evenly among those that need more. Undefined when
 * somebody would be left with next to nothing.
 */
export function shareRoom(needs: readonly number[], room: number): number[] | undefined {
  const shares = new Array<number>(needs.length).fill(0);
  const order = needs.map((_, index) => index).sort((a, b) => (needs[a] ?? 0) - (needs[b] ?? 0));
  let left = room;
  for (const [done, index] of order.entries()) {
    const need = needs[index] ?? 0;
    const share = Math.min(need, Math.floor(left / (order.length - done)));
    if (share < need && share < minShare) return undefined;
    shares[index] = share;
    left -= share;
  }
  return shares;
}

/** What the note about a cut takes, with what re-reading the two ends may add. */
const noteTokens = 32;

/** Head and tail of a text whose ids these are, of `share` tokens together with the note between them. */
export function* cutMiddle(ids: Int32Array, share: number, decode: (ids: Int32Array) => Steps<string>): Steps<string> {
  const half = Math.max(1, Math.floor((share - noteTokens) / 2));
  const head = (yield* decode(ids.subarray(0, half))).replace(/\ufffd+$/u, '');
  const tail = (yield* decode(ids.subarray(ids.length - half))).replace(/^\ufffd+/u, '');
  return `${head}\n[… about ${ids.length - 2 * half} tokens are left out here: the context is almost full …]\n${tail}`;
}

/** Cutting again, since tokens merge otherwise in place and some templates write contents as JSON. */
const maxRounds = 4;

/** The answers as they go into the context, cut where they must be; undefined when not even that fits. */
export function* fitAnswers(conversation: Conversation, answers: readonly Message[], room: number): Steps<RenderedMessages | undefined> {
  const whole = yield* conversation.deltaSteps(answers);
  if (whole.tokenIds.length <= room) return whole;
  const { tokenizer } = conversation;
  const frame = yield* conversation.deltaSteps(answers.map((answer) => ({ ...answer, content: '' })));
  const contents: Int32Array[] = [];
  for (const { content } of answers) contents.push(yield* tokenizer.encodeSteps([{ text: content, trusted: false }]));
  let wanted = room - frame.tokenIds.length;
  for (let round = 0; round < maxRounds; round++) {
    const needs = contents.map((ids) => ids.length);
    const shares = shareRoom(needs, wanted);
    if (!shares) return undefined;
    const cut: Message[] = [];
    for (const [index, answer] of answers.entries()) {
      const [ids, share] = [contents[index] ?? new Int32Array(0), shares[index] ?? 0];
      const isWhole = share >= ids.length;
      cut.push(isWhole ? answer : { ...answer, content: yield* cutMiddle(ids, share, (part) => tokenizer.decodeSteps(part)) });
    }
    const fitted = yield* conversation.deltaSteps(cut);
    if (fitted.tokenIds.length <= room) return fitted;
    const taken = fitted.tokenIds.length - frame.tokenIds.length;
    wanted = Math.floor((wanted * (room - frame.tokenIds.length)) / taken) - 8;
  }
  return undefined;
}
