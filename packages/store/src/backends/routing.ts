// Which backend a rollout goes to. Pure: the one with the fewest rollouts in flight, or the group's own backend while it is not
// much fuller than the others. A rollout stays where it is until another backend is far less busy.

import type { BackendId } from '@millrace/protocol';

/** A backend that may be chosen, with its load apart from the rollout that is being placed. */
export interface Candidate {
  readonly id: BackendId;
  /** Rollouts that run on it. */
  readonly inFlight: number;
  /** The context of those rollouts together, as last reported. */
  readonly tokens: number;
  /** Rollouts of the same group that run or ran on it with its current weights, so that their prompt is in its cache. */
  readonly siblings: number;
}

export interface Routing {
  /** A group's backend is preferred while it has at most this many times the average in flight, plus one. */
  readonly affinityBound: number;
  /** A rollout leaves its backend if that has more than this many times the rollouts of the least busy one … */
  readonly spillFactor: number;
  /** … and at least this many more. */
  readonly spillRollouts: number;
}

export const defaultRouting: Routing = { affinityBound: 1.25, spillFactor: 2, spillRollouts: 16 };

export interface Choice {
  /** Never chosen. */
  readonly exclude?: readonly BackendId[];
  /** Where the rollout is and may stay. */
  readonly current?: BackendId;
  readonly routing?: Routing;
}

/**
 * Undefined if there is nothing to choose from. The search is linear: there are tens of backends, and their counts are read again
 * for each choice, so a heap would be built only to be used once.
 */
export function chooseBackend<T extends Candidate>(candidates: readonly T[], choice: Choice = {}): T | undefined {
  const { exclude = [], current, routing = defaultRouting } = choice;
  const allowed = exclude.length === 0 ? candidates : candidates.filter(({ id }) => !exclude.includes(id));
  const least = best(allowed, isLess);
  const here = current === undefined ? undefined : allowed.find(({ id }) => id === current);
  if (!least || (here && !isFarBusier(here, least, routing))) return here ?? least;
  const bound = (routing.affinityBound * (sumOf(allowed) + 1)) / allowed.length + 1;
  const near = allowed.filter((one) => one !== here && one.siblings > 0 && one.inFlight < bound);
  return best(near, (a, b) => (a.siblings === b.siblings ? isLess(a, b) : a.siblings > b.siblings)) ?? least;
}

/** Whether a move is worth prefilling the context again. The difference is at least two, so that no move triggers one back. */
export function isFarBusier(here: Load, there: Load, { spillFactor, spillRollouts }: Routing): boolean {
  const more = here.inFlight - there.inFlight;
  return more >= Math.max(2, spillRollouts) && here.inFlight > spillFactor * there.inFlight;
}

type Load = Pick<Candidate, 'inFlight'>;

function isLess(a: Candidate, b: Candidate): boolean {
  if (a.inFlight !== b.inFlight) return a.inFlight < b.inFlight;
  return a.tokens === b.tokens ? a.id < b.id : a.tokens < b.tokens;
}

function best<T>(candidates: readonly T[], isBetter: (a: T, b: T) => boolean): T | undefined {
  return candidates.reduce<T | undefined>((found, one) => (found === undefined || isBetter(one, found) ? one : found), undefined);
}

function sumOf(candidates: readonly Candidate[]): number {
  return candidates.reduce((total, { inFlight }) => total + inFlight, 0);
}
