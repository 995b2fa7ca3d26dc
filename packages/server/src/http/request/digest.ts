// The digest that distinguishes a repeated submission from a different one: sha256 over JSON with keys sorted at every level.

import { createHash } from 'node:crypto';
import { RolloutError } from '@millrace/protocol';

const deepest = 100;

export function toDigest(value: unknown): string {
  return createHash('sha256').update(toCanonicalJson(value, 0)).digest('hex');
}

/** The order of keys does not matter. Refuses nesting deep enough to exhaust a stack. */
function toCanonicalJson(value: unknown, depth: number): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (depth > deepest) throw new RolloutError('bad-request', `nested deeper than ${deepest} levels`);
  if (Array.isArray(value)) return `[${value.map((item) => toCanonicalJson(item, depth + 1)).join(',')}]`;
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${toCanonicalJson(item, depth + 1)}`).join(',')}}`;
}
