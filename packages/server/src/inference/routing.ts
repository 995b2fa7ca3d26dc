// Which backend a rollout goes to: the one with the least in flight, ties by id. Pure.

import type { BackendId } from '@millrace/protocol';

export interface Candidate {
  readonly id: BackendId;
  readonly inFlight: number;
}

/** An excluded backend is never chosen. Absent when there is nothing to choose from. */
export function chooseBackend<T extends Candidate>(candidates: Iterable<T>, exclude?: BackendId): T | undefined {
  let best: T | undefined;
  for (const candidate of candidates) {
    if (candidate.id !== exclude && (best === undefined || isBetter(candidate, best))) best = candidate;
  }
  return best;
}

function isBetter(a: Candidate, b: Candidate): boolean {
  return a.inFlight === b.inFlight ? a.id < b.id : a.inFlight < b.inFlight;
}
