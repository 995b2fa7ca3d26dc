// The numbers of the ledger: token ids and logprobs, checked before they are kept, and ids as the decimal text of a prompt.

import { RolloutError } from '@millrace/protocol';

const maxTokenId = 0x7fff_ffff;
export const bytesPerId = 11; // ten digits and a comma

interface SampledNumbers {
  readonly tokenIds: ArrayLike<number>;
  readonly logprobs: ArrayLike<number>;
}

export function writeDecimal(buffer: Buffer, at: number, id: number): number {
  let end = at + 1;
  for (let power = 10; power <= id; power *= 10) end += 1;
  let rest = id;
  for (let digit = end - 1; digit >= at; digit--) {
    buffer[digit] = 0x30 + (rest % 10);
    rest = Math.trunc(rest / 10);
  }
  return end;
}

export function toTokenIds(ids: ArrayLike<number>): Int32Array {
  const tokenIds = new Int32Array(ids.length);
  for (let i = 0; i < ids.length; i++) {
    const id = ids[i];
    if (id === undefined || !Number.isInteger(id) || id < 0 || id > maxTokenId)
      throw refuse(`token id ${id} at ${i}: not a non-negative int32`);
    tokenIds[i] = id;
  }
  return tokenIds;
}

export function toLogprobs({ tokenIds, logprobs }: SampledNumbers): Float32Array {
  if (logprobs.length !== tokenIds.length) throw refuse(`${logprobs.length} logprobs for ${tokenIds.length} sampled ids`);
  const floats = Float32Array.from(logprobs);
  const bad = floats.findIndex((value) => !Number.isFinite(value));
  if (bad >= 0) throw refuse(`logprob ${logprobs[bad]} at ${bad}: not a finite number`);
  return floats;
}

export function refuse(what: string): RolloutError {
  return new RolloutError('internal', `the token ledger refuses ${what}`);
}
