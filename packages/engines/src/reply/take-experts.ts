// Takes the routed experts out of a reply before it is parsed: they are megabytes of base64. The chunks of the reply are not joined,
// because a copy of them is garbage of the same size.

import type { Steps } from '@millrace/base/pace';

const fieldName = Buffer.from('"routed_experts":');
const [quote, space] = [0x22, 0x20];
/** The field's name and the spaces behind it, of which a chunk may hold only a part. */
const nameBytes = fieldName.length + 16;
const stepBytes = 1 << 20;

export interface TakenExperts {
  /** The reply, with an empty text in place of the experts. */
  readonly rest: readonly Buffer[];
  /** In base64. Absent if the reply has none. */
  readonly experts?: readonly Buffer[];
  /** The experts begin, but do not end. */
  readonly isPartial?: true;
}

/** Takes the first experts out of a reply or of the events of a stream, in steps of about a millisecond. */
export function* takeExperts(chunks: readonly Buffer[]): Steps<TakenExperts> {
  const [rest, experts]: [Buffer[], Buffer[]] = [[], []];
  let state: 'before' | 'in' | 'after' = 'before';
  let waiting: Buffer = Buffer.alloc(0);
  let unpaused = 0;
  for (const chunk of chunks) {
    let left: Buffer = chunk;
    if (state === 'before') {
      left = Buffer.concat([waiting, chunk]);
      const begin = findBegin(left);
      rest.push(left.subarray(0, begin ?? Math.max(0, left.length - nameBytes)));
      waiting = left.subarray(begin ?? Math.max(0, left.length - nameBytes));
      if (begin === undefined) continue;
      [state, left] = ['in', waiting];
    }
    if (state === 'in') {
      const end = left.indexOf(quote);
      experts.push(end < 0 ? left : left.subarray(0, end));
      [state, left] = end < 0 ? ['in', left] : ['after', left.subarray(end)];
    }
    if (state === 'after') rest.push(left);
    unpaused += chunk.length;
    if (unpaused < stepBytes) continue;
    unpaused = 0;
    yield;
  }
  if (state === 'after') return { rest, experts };
  const isPartial = state === 'in' || isBeginning(waiting);
  return { rest: [...rest, ...(state === 'in' ? experts : [waiting])], ...(isPartial ? { isPartial } : {}) };
}

/** Where the text of the experts begins, after its quote. */
function findBegin(text: Buffer): number | undefined {
  for (let at = text.indexOf(fieldName); at >= 0; at = text.indexOf(fieldName, at + 1)) {
    const begin = skipSpaces(text, at + fieldName.length);
    if (text[begin] === quote) return begin + 1;
  }
  return undefined;
}

function isBeginning(text: Buffer): boolean {
  const at = text.lastIndexOf(fieldName);
  return at >= 0 && skipSpaces(text, at + fieldName.length) >= text.length;
}

function skipSpaces(text: Buffer, from: number): number {
  let at = from;
  while (text[at] === space) at += 1;
  return at;
}
