// The kinds of faults of the chaos run, and a plan of them from a seed: which faults, how far or long each, and when. Faults of
// different lanes overlap; those of one lane follow each other.

import { makeRandom } from '../../models/random.ts';

/**
 * - kill-*: SIGKILL; stop-*: SIGSTOP for longer than the lease
 * - disk-full: no byte is left on the store's disk; store-lock: another process holds the write lock; slow-sync: every fsync takes longer
 * - kill-database: PostgreSQL is killed or crashes, and is started again; for a store in PostgreSQL
 * - cut-network: a machine that joined has no network for longer than the lease, or gets no replies; kill-machine: it dies with all of its
 *   workers; machine-clock: its date jumps, and no other; for a store in PostgreSQL
 * - clock-step: the date of the service and of the database jumps, by seconds or days, forward or back
 * - webhook-dead: the receiver breaks every connection; webhook-slow: it answers late; verifier-hang: evaluate never returns
 * - backend-*: one of the two backends breaks connections, never answers, or answers with errors
 */
export const chaosKinds = {
  'kill-worker': { lane: 'processes', weight: 80 },
  'kill-server': { lane: 'processes', weight: 40 },
  'stop-worker': { lane: 'processes', weight: 40 },
  'stop-server': { lane: 'processes', weight: 25 },
  'disk-full': { lane: 'store', weight: 60 },
  'store-lock': { lane: 'store', weight: 60 },
  'slow-sync': { lane: 'store', weight: 85 },
  'kill-database': { lane: 'store', weight: 60 },
  'cut-network': { lane: 'machine', weight: 80 },
  'kill-machine': { lane: 'machine', weight: 30 },
  'machine-clock': { lane: 'machine-clock', weight: 40 },
  'clock-step': { lane: 'clock', weight: 160 },
  'webhook-dead': { lane: 'delivery', weight: 75 },
  'webhook-slow': { lane: 'delivery', weight: 75 },
  'verifier-hang': { lane: 'verifier', weight: 100 },
  'backend-reset': { lane: 'backends', weight: 70 },
  'backend-hang': { lane: 'backends', weight: 60 },
  'backend-error': { lane: 'backends', weight: 70 },
} as const satisfies Readonly<Record<string, { readonly lane: string; readonly weight: number }>>;
export type ChaosKind = keyof typeof chaosKinds;
type ChaosLane = (typeof chaosKinds)[ChaosKind]['lane'];

export interface PlannedFault {
  readonly kind: ChaosKind;
  /** The pause before it, from 0 to 1 of the longest. */
  readonly pause: number;
  /** How long or how far, from 0 to 1. */
  readonly size: number;
  /** Which of several victims, or directions; from 0 to 1. */
  readonly choice: number;
}

interface PlanOptions {
  readonly faults: number;
  readonly seed: number;
  /** Those that this machine can cause. */
  readonly kinds: readonly ChaosKind[];
}

/** Exactly `faults` of them, by weight, and at least one of each kind if there are enough. */
export function planFaults({ faults, seed, kinds }: PlanOptions): ReadonlyMap<ChaosLane, readonly PlannedFault[]> {
  const random = makeRandom(seed);
  const counts = shareOut(faults, kinds);
  const planned = kinds.flatMap((kind) =>
    Array.from({ length: counts.get(kind) ?? 0 }, () => ({ kind, pause: random(), size: random(), choice: random(), order: random() })),
  );
  planned.sort((a, b) => a.order - b.order);
  return Map.groupBy(planned, ({ kind }) => chaosKinds[kind].lane);
}

function shareOut(faults: number, kinds: readonly ChaosKind[]): ReadonlyMap<ChaosKind, number> {
  const total = kinds.reduce((sum, kind) => sum + chaosKinds[kind].weight, 0);
  const counts = new Map<ChaosKind, number>();
  let left = faults;
  let weightLeft = total;
  for (const [index, kind] of kinds.entries()) {
    const fair = Math.round((left * chaosKinds[kind].weight) / weightLeft);
    const othersNeed = kinds.length - index - 1;
    const count = Math.max(Math.min(fair, left - othersNeed), Math.min(1, left));
    counts.set(kind, count);
    left -= count;
    weightLeft -= chaosKinds[kind].weight;
  }
  return counts;
}
