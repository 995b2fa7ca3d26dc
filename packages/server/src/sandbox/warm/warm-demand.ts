// Which sandboxes will be needed next, judged by what was asked for lately. Pure: who asks gives the time.

import type { SandboxSpec } from '../sandbox.ts';

interface Ask {
  readonly key: string;
  readonly atMs: number;
}

export class WarmDemand {
  readonly #capacity: number;
  readonly #maxAgeMs: number;
  readonly #specs = new Map<string, SandboxSpec>();
  /** The newest last. */
  #asks: Ask[] = [];

  constructor(capacity: number, maxAgeMs: number) {
    this.#capacity = capacity;
    this.#maxAgeMs = maxAgeMs;
  }

  record(spec: SandboxSpec, atMs: number, count = 1): void {
    const key = toKey(spec);
    this.#specs.set(key, spec);
    for (let index = 0; index < Math.min(count, this.#keptAsks); index += 1) this.#asks.push({ key, atMs });
    this.#trim(atMs);
  }

  /** Until it is asked for again. */
  forget(key: string): void {
    this.#asks = this.#asks.filter((ask) => ask.key !== key);
    this.#specs.delete(key);
  }

  /**
   * How many of each should wait: the capacity, shared out by how often each was asked for, where an ask counts half of one that is
   * twice the capacity younger. What was asked for once only gets none: a task of which there is no second.
   */
  targets(atMs: number): { readonly key: string; readonly spec: SandboxSpec; readonly count: number }[] {
    this.#trim(atMs);
    const weights = new Map<string, { count: number; weight: number }>();
    for (const [age, { key }] of this.#asks.toReversed().entries()) {
      const { count, weight } = weights.get(key) ?? { count: 0, weight: 0 };
      weights.set(key, { count: count + 1, weight: weight + 0.5 ** (age / (2 * this.#capacity)) });
    }
    const wanted = [...weights].filter(([, { count }]) => count > 1).map(([key, { weight }]) => ({ key, weight }));
    return shareOut(wanted, this.#capacity).flatMap(({ key, count }) => {
      const spec = this.#specs.get(key);
      return spec === undefined || count === 0 ? [] : [{ key, spec, count }];
    });
  }

  /** Older ones weigh next to nothing. */
  get #keptAsks(): number {
    return 16 * this.#capacity;
  }

  #trim(atMs: number): void {
    this.#asks = this.#asks.filter((ask) => atMs - ask.atMs < this.#maxAgeMs).slice(-this.#keptAsks);
    const kept = new Set(this.#asks.map(({ key }) => key));
    for (const key of this.#specs.keys()) if (!kept.has(key)) this.#specs.delete(key);
  }
}

/** The same for specs that ask for the same, in whatever order they say it. */
export function toKey(spec: SandboxSpec): string {
  return JSON.stringify(spec, (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}

/** Whole parts first; what is left goes to the largest fractions, and of equals to the first. */
function shareOut(wanted: readonly { key: string; weight: number }[], capacity: number): { key: string; count: number }[] {
  const total = wanted.reduce((sum, { weight }) => sum + weight, 0);
  const parts = wanted.map(({ key, weight }) => ({ key, exact: (capacity * weight) / total }));
  const left = capacity - parts.reduce((sum, { exact }) => sum + Math.floor(exact), 0);
  const byFraction = parts.toSorted((a, b) => (b.exact % 1) - (a.exact % 1));
  return byFraction.map(({ key, exact }, rank) => ({ key, count: Math.floor(exact) + (rank < left ? 1 : 0) }));
}
