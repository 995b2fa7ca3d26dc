// Whether a rollout's first token is too old for the current weights.

import type { Ledger } from '@millrace/model';
import { RolloutError } from '@millrace/protocol';
import type { PolicyGate } from './policy-gate.ts';

interface StalenessRule {
  readonly gate?: PolicyGate;
  readonly maxStaleness?: number;
}

/** Throws `too-stale`. Not part of a call's retries: the rollout starts again from its opening, so a retry from here does not help. */
export function checkStaleness(ledger: Ledger, { gate, maxStaleness = Number.POSITIVE_INFINITY }: StalenessRule): void {
  const { first, last } = ledger.policyVersions ?? {};
  if (first === undefined || last === undefined) return;
  // A server may report newer weights than any resume has named.
  const current = Math.max(gate?.policyVersion ?? 0, last);
  if (current - first <= maxStaleness) return;
  const ages = `started at policy version ${first}, ${current - first} behind the current ${current}`;
  throw new RolloutError('too-stale', `the rollout ${ages}; at most ${maxStaleness} are allowed`);
}
