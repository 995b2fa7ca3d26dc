// Where the text of sampled tokens has a stop string. Tokens and characters do not match one for one, so the text is decoded again up to
// the token that completes it.

import type { Sampling } from '@millrace/protocol';

type Decode = (tokenIds: Int32Array) => Promise<string>;

/** The stop string that is complete first, after `min_tokens`, and how many tokens the text needs to have it. */
export async function findStopString(
  tokenIds: Int32Array,
  { stop = [], min_tokens = 0 }: Pick<Sampling, 'stop' | 'min_tokens'>,
  decode: Decode,
): Promise<{ readonly tokens: number; readonly stop: string } | undefined> {
  const text = await decode(tokenIds);
  const from = min_tokens === 0 ? 0 : (await decode(tokenIds.subarray(0, min_tokens))).length;
  const ends = stop.flatMap((one) => {
    const at = text.indexOf(one, Math.max(0, from - one.length + 1));
    return at < 0 ? [] : [{ stop: one, end: at + one.length }];
  });
  const [first] = ends.toSorted((a, b) => a.end - b.end);
  return first && { stop: first.stop, tokens: await countTokens(tokenIds, text.slice(0, first.end), decode) };
}

/** The fewest tokens whose text starts with this. */
async function countTokens(tokenIds: Int32Array, text: string, decode: Decode): Promise<number> {
  let [low, high] = [1, tokenIds.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((await decode(tokenIds.subarray(0, middle))).startsWith(text)) high = middle;
    else low = middle + 1;
  }
  return low;
}
