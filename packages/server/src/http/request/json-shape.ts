// Refuses bodies whose shape alone makes them slow to parse and to check, before they are parsed: too deep, an object with too many fields,
// or too many values. Reads each byte once.

import type { Steps } from '@millrace/base/pace';

const deepest = 100;
const mostFields = 10_000;
/** Different ones in a body: each new name slows the parser down. */
const mostNames = 10_000;
/** Of a body; a larger batch is sent in several requests. */
const mostValues = 200_000;
/** Of one rollout or task of a list, or of anything else this deep: a schema checks it without a pause. */
const mostItemValues = 20_000;
const itemDepth = 3;

const [quote, backslash, colon, comma] = [0x22, 0x5c, 0x3a, 0x2c];
const [openObject, closeObject, openArray, closeArray] = [0x7b, 0x7d, 0x5b, 0x5d];

/** How many bytes are read in one step: a few milliseconds. */
const sliceBytes = 1 << 18;

/** Why the body is refused; undefined if it is not. The text need not be valid JSON. */
export function* findShapeFault(body: Uint8Array): Steps<string | undefined> {
  let next = sliceBytes;
  const fields = new Uint32Array(deepest + 2);
  const names = new NameCount();
  let [depth, values, itemStart, textStart, textEnd] = [0, 0, 0, 0, 0];
  for (let at = 0; at < body.length; at += 1) {
    if (at >= next) {
      next = at + sliceBytes;
      yield undefined;
    }
    const byte = body[at];
    if (byte === quote) {
      textStart = at;
      at = endOfString(body, at);
      textEnd = at;
    } else if (byte === comma) values += 1;
    else if (byte === openObject || byte === openArray) {
      depth += 1;
      values += 1;
      if (depth > deepest) return `the body is nested deeper than ${deepest} levels, at position ${at}`;
      if (depth === itemDepth) itemStart = values;
      fields[depth] = 0;
    } else if (byte === closeObject || byte === closeArray) depth = Math.max(0, depth - 1);
    else if (byte === colon) {
      fields[depth] = (fields[depth] ?? 0) + 1;
      if ((fields[depth] ?? 0) > mostFields) return `an object of the body has more than ${mostFields} fields, at position ${at}`;
      if (names.add(body, textStart, textEnd) > mostNames) return `the body has more than ${mostNames} different names, at position ${at}`;
    }
    if (values > mostValues) return `the body has more than ${mostValues} values, at position ${at}: send it in several requests`;
    if (depth >= itemDepth && values - itemStart > mostItemValues)
      return `a rollout or task of the body has more than ${mostItemValues} values, at position ${at}`;
  }
  return undefined;
}

/** Counts different texts by their hashes: never too many, and too few only where two hashes are the same. */
class NameCount {
  readonly #seen = new Uint8Array(1 << 17);
  #count = 0;

  add(body: Uint8Array, from: number, to: number): number {
    let hash = 0;
    for (let at = from; at < to; at += 1) hash = (Math.imul(hash, 31) + (body[at] ?? 0)) | 0;
    const slot = (hash ^ (hash >>> 15)) & (this.#seen.length - 1);
    if (this.#seen[slot] === 0) this.#count += 1;
    this.#seen[slot] = 1;
    return this.#count;
  }
}

/** The place of the closing quote. */
function endOfString(body: Uint8Array, from: number): number {
  for (let at = from + 1; at < body.length; at += 1) {
    if (body[at] === backslash) at += 1;
    else if (body[at] === quote) return at;
  }
  return body.length;
}
