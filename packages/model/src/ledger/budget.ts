// The context budget: how long a turn may be, and how tool results are shortened so that they and one more turn still fit. A
// shortened result loses its middle and says so there.

import type { Steps } from '@millrace/base/pace';
import type { Limits, Message, Sampling } from '@millrace/protocol';
import type { Conversation, RenderedMessages } from '../conversation.ts';

/** How many tokens the next turn may sample at most; 0 when the context is full. */
export function chooseTurnTokens(used: number, limits: Pick<Limits, 'max_context_tokens'>, sampling: Pick<Sampling, 'max_tokens'>): number {
  return Math.max(0, Math.min(sampling.max_tokens, limits.max_context_tokens - used));
}

/** How many tokens the results may take: they leave room for one more useful turn. */
export function chooseResultRoom(used: number, { max_context_tokens: most }: Pick<Limits, 'max_context_tokens'>): number {
  const minTurn = Math.min(256, Math.ceil(most / 16));
  return most - used - minTurn;
}

/** A result cut to fewer tokens than this is not worth a turn. */
const minShare = 64;

/**
 * Fair shares: small needs are met in full, and the rest is divided evenly among the large ones. Undefined when a share would be
 * too small to be useful.
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

/** The size of the note about a cut, plus what tokenising the two ends again may add. */
const noteTokens = 32;

/** The head and the tail of the text with these ids, and a note between them: `share` tokens in all. */
export function* cutMiddle(ids: Int32Array, share: number, decode: (ids: Int32Array) => Steps<string>): Steps<string> {
  const half = Math.max(1, Math.floor((share - noteTokens) / 2));
  const head = withoutBrokenEnd(yield* decode(ids.subarray(0, half)));
  const tail = (yield* decode(ids.subarray(ids.length - half))).replace(/^\ufffd+/u, '');
  return `${head}\n[… about ${ids.length - 2 * half} tokens are left out here: the context is almost full …]\n${tail}`;
}

/** A cut inside a character leaves replacement characters. */
function withoutBrokenEnd(text: string): string {
  let end = text.length;
  while (text[end - 1] === '\ufffd') end -= 1;
  return text.slice(0, end);
}

/** Rounds of cutting: in place, tokens may merge differently, and some templates write contents as JSON. */
const maxRounds = 4;

/** How the results are written, alone or with all that is before them, and how many tokens this may take. */
export interface ResultFrame {
  readonly render: (results: readonly Message[]) => Steps<RenderedMessages>;
  readonly room: number;
}

/** The results as they go into the context, shortened if necessary; undefined when not even that fits. */
export function* fitResults(
  { tokenizer }: Pick<Conversation, 'tokenizer'>,
  results: readonly Message[],
  { render, room }: ResultFrame,
): Steps<RenderedMessages | undefined> {
  const whole = yield* render(results);
  if (whole.tokenIds.length <= room) return whole;
  const frame = yield* render(results.map((result) => ({ ...result, content: '' })));
  const contents: Int32Array[] = [];
  for (const { content } of results) contents.push(yield* tokenizer.encodeSteps([{ text: content, trusted: false }]));
  let wanted = room - frame.tokenIds.length;
  for (let round = 0; round < maxRounds; round++) {
    const needs = contents.map((ids) => ids.length);
    const shares = shareRoom(needs, wanted);
    if (!shares) return undefined;
    const cut: Message[] = [];
    for (const [index, result] of results.entries()) {
      const [ids, share] = [contents[index] ?? new Int32Array(0), shares[index] ?? 0];
      const isWhole = share >= ids.length;
      cut.push(isWhole ? result : { ...result, content: yield* cutMiddle(ids, share, (part) => tokenizer.decodeSteps(part)) });
    }
    const fitted = yield* render(cut);
    if (fitted.tokenIds.length <= room) return fitted;
    const taken = fitted.tokenIds.length - frame.tokenIds.length;
    wanted = Math.floor((wanted * (room - frame.tokenIds.length)) / taken) - 8;
  }
  return undefined;
}
