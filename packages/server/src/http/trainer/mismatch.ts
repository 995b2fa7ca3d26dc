// How far the logprobs that a trainer recomputed are from those that were recorded when the tokens were sampled. They differ a little
// because engines and trainers compute differently; a difference that grows means that something is wrong: a stale cache, other weights,
// another precision, another template.

import { type LogprobMismatch, RolloutError, type TrainerSample, type Trajectory } from '@millrace/protocol';

interface BackendGap {
  readonly backend: string;
  readonly version: number | null;
  tokens: number;
  sumAbs: number;
  mostAbs: number;
  sumKl: number;
}

export class MismatchTally {
  readonly #tallies = new Map<string, BackendGap>();

  /** Throws if a list of the sample does not have one number for each sampled token of its branch. */
  add(sample: TrainerSample, { segments }: Pick<Trajectory, 'segments'>): void {
    const sampled = segments.filter(({ kind, branch = 0 }) => kind === 'sampled' && branch === sample.branch);
    checkLengths(
      sample,
      sampled.reduce((sum, { tokenIds }) => sum + tokenIds.length, 0),
    );
    const { logprobs = [] } = sample;
    let at = 0;
    for (const { logprobs: recorded, backend = '', policy_versions: span } of sampled) {
      const tally = this.#tallyOf(backend, span?.last ?? null);
      for (const value of recorded) {
        const again = logprobs[at++];
        if (again !== undefined) note(tally, again - value);
      }
    }
  }

  read(): LogprobMismatch[] {
    const tallies = [...this.#tallies.values()].filter(({ tokens }) => tokens > 0);
    return tallies
      .map(({ backend, version, tokens, sumAbs, mostAbs, sumKl }) => ({
        backend,
        policy_version: version,
        tokens,
        mean_abs: sumAbs / tokens,
        most_abs: mostAbs,
        kl: sumKl / tokens,
      }))
      .sort((one, other) => (one.policy_version ?? 0) - (other.policy_version ?? 0) || (one.backend < other.backend ? -1 : 1));
  }

  #tallyOf(backend: string, version: number | null): BackendGap {
    const key = `${version} ${backend}`;
    const tally = this.#tallies.get(key) ?? { backend, version, tokens: 0, sumAbs: 0, mostAbs: 0, sumKl: 0 };
    this.#tallies.set(key, tally);
    return tally;
  }
}

/** One token with an infinite divergence would hide all others. */
const mostKl = 1e6;

function note(tally: BackendGap, difference: number): void {
  const size = Math.abs(difference);
  tally.tokens += 1;
  tally.sumAbs += size;
  tally.mostAbs = Math.max(tally.mostAbs, size);
  tally.sumKl += Math.min(mostKl, Math.expm1(difference) - difference);
}

function checkLengths(sample: TrainerSample, tokens: number): void {
  for (const name of ['advantages', 'logprobs', 'kl'] as const) {
    const length = sample[name]?.length ?? tokens;
    if (length === tokens) continue;
    const of = `rollout ${sample.rollout_id}${sample.branch === 0 ? '' : `, branch ${sample.branch}`}`;
    throw new RolloutError('bad-request', `${name} of ${of}: it has ${length} numbers, and ${tokens} tokens were sampled`);
  }
}

/** Weighted by tokens; undefined without any. */
function meanMismatch(parts: readonly LogprobMismatch[]): number | undefined {
  const tokens = parts.reduce((sum, one) => sum + one.tokens, 0);
  return tokens === 0 ? undefined : parts.reduce((sum, one) => sum + one.mean_abs * one.tokens, 0) / tokens;
}

/** Below this, in nats, differences are those of arithmetic. */
const floor = 0.02;
const growth = 2;
/** Steps that say what is usual. */
const leastBefore = 3;

/** `before` are the mismatches of the steps before, newest first. */
export function findAlarm(mismatch: readonly LogprobMismatch[], before: readonly (readonly LogprobMismatch[])[]): string | null {
  const mean = meanMismatch(mismatch);
  if (mean === undefined) return null;
  const usual = before.flatMap((parts) => meanMismatch(parts) ?? []);
  const middle = median(usual);
  if (usual.length >= leastBefore && mean > floor && mean > growth * middle)
    return `recomputed logprobs are ${mean.toFixed(3)} nats from the recorded ones on average; it was ${middle.toFixed(3)} before`;
  return findOddBackend(mismatch);
}

/** A backend whose tokens are much further away than those of the others has other weights, or another precision. */
function findOddBackend(mismatch: readonly LogprobMismatch[]): string | null {
  const backends = [...Map.groupBy(mismatch, ({ backend }) => backend)].map(([backend, parts]) => ({
    backend,
    mean: meanMismatch(parts) ?? 0,
  }));
  for (const { backend, mean } of backends) {
    const others = backends.filter((one) => one.backend !== backend).map((one) => one.mean);
    if (others.length > 0 && mean > floor && mean > growth * median(others))
      return `recomputed logprobs of ${backend} are ${mean.toFixed(3)} nats from the recorded ones; of the other backends, ${median(others).toFixed(3)}`;
  }
  return null;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}
