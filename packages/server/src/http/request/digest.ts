// The digest that distinguishes a repeated submission from a different one: sha256 over JSON with keys sorted at every level.

import { createHash } from 'node:crypto';
import type { Steps } from '@millrace/base/pace';
import { RolloutError } from '@millrace/protocol';

const deepest = 100;

/** Items of lists in the request are one step each. */
export function* toDigest(value: unknown): Steps<string> {
  const hash = createHash('sha256');
  for (const piece of toPieces(value, 0)) {
    hash.update(piece);
    yield undefined;
  }
  return hash.digest('hex');
}

const itemDepth = 2;

function* toPieces(value: unknown, depth: number): Generator<string> {
  if (typeof value !== 'object' || value === null || depth >= itemDepth) return yield toCanonicalJson(value, depth);
  const isList = Array.isArray(value);
  let mark = isList ? '[' : '{';
  for (const [key, item] of isList ? value.entries() : entriesOf(value)) {
    yield isList ? mark : `${mark}${JSON.stringify(key)}:`;
    yield* toPieces(item, depth + 1);
    mark = ',';
  }
  yield `${mark === ',' ? '' : mark}${isList ? ']' : '}'}`;
}

function entriesOf(value: object): [string, unknown][] {
  return Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
}

/** The order of keys does not matter. Refuses nesting deep enough to exhaust a stack. */
function toCanonicalJson(value: unknown, depth: number): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (depth > deepest) throw new RolloutError('bad-request', `nested deeper than ${deepest} levels`);
  if (Array.isArray(value)) return `[${value.map((item) => toCanonicalJson(item, depth + 1)).join(',')}]`;
  return `{${entriesOf(value)
    .map(([key, item]) => `${JSON.stringify(key)}:${toCanonicalJson(item, depth + 1)}`)
    .join(',')}}`;
}
