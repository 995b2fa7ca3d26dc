// The sampling masks of a turn: for each sampled token, the ids that top-k, top-p and min-p left to sample from. A mask without the token
// that was sampled is wrong, and refused.

import type { SamplingMask } from '@millrace/protocol';

/** Reads one list of ids for each sampled token. Returns what is wrong if they do not match the tokens. */
export function toSamplingMask(rows: unknown, tokenIds: Int32Array): SamplingMask | string {
  if (!Array.isArray(rows)) return 'no sampling masks, which were asked for';
  if (rows.length !== tokenIds.length) return `${rows.length} sampling masks for ${tokenIds.length} tokens`;
  const lengths = Int32Array.from(rows, (row: unknown) => (Array.isArray(row) ? row.length : 0));
  const ids = new Int32Array(lengths.reduce((sum, length) => sum + length, 0));
  let at = 0;
  for (const [index, row] of rows.entries()) {
    if (!Array.isArray(row) || !row.includes(tokenIds[index])) return `a sampling mask at ${index} without its token ${tokenIds[index]}`;
    for (const id of row) {
      if (!Number.isInteger(id) || id < 0 || id > 0x7fff_ffff) return `${JSON.stringify(id)} as a token id in a sampling mask`;
      ids[at++] = id;
    }
  }
  return { lengths, tokenIds: ids };
}

/** The masks of the tokens from `start` to `end`. */
export function sliceMask({ lengths, tokenIds }: SamplingMask, start: number, end: number): SamplingMask {
  const sum = (to: number) => lengths.subarray(0, to).reduce((total, length) => total + length, 0);
  return { lengths: lengths.subarray(start, end), tokenIds: tokenIds.subarray(sum(start), sum(end)) };
}
