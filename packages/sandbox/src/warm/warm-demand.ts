// Predicts which sandboxes will be needed next from recent requests. Pure: the caller passes the time.

import type { SandboxSpec } from '../sandbox.ts';

interface SandboxRequest {
  readonly key: string;
  readonly atMs: number;
}

export class WarmDemand {
  readonly #capacity: number;
  readonly #maxAgeMs: number;
  readonly #specs = new Map<string, SandboxSpec>();
  /** The newest last. */
  #requests: SandboxRequest[] = [];

  constructor(capacity: number, maxAgeMs: number) {
    this.#capacity = capacity;
    this.#maxAgeMs = maxAgeMs;
  }

  record(spec: SandboxSpec, atMs: number, count = 1): void {
    const key = toKey(spec);
    this.#specs.set(key, spec);
    for (let index = 0; index < Math.min(count, this.#keptRequests); index += 1) this.#requests.push({ key, atMs });
    this.#trim(atMs);
  }

  /** Ignores earlier requests for this key. */
  forget(key: string): void {
    this.#requests = this.#requests.filter((request) => request.key !== key);
    this.#specs.delete(key);
  }

  /**
   * How many sandboxes of each kind to keep ready: the capacity, shared by how often each kind was requested. A request counts half as
   * much as one that is more recent by twice the capacity. A kind that was requested only once gets none.
   */
  targets(atMs: number): { readonly key: string; readonly spec: SandboxSpec; readonly count: number }[] {
    this.#trim(atMs);
    const weights = new Map<string, { count: number; weight: number }>();
    for (const [age, { key }] of this.#requests.toReversed().entries()) {
      const { count, weight } = weights.get(key) ?? { count: 0, weight: 0 };
      weights.set(key, { count: count + 1, weight: weight + 0.5 ** (age / (2 * this.#capacity)) });
    }
    const wanted = [...weights].filter(([, { count }]) => count > 1).map(([key, { weight }]) => ({ key, weight }));
    return shareOut(wanted, this.#capacity).flatMap(({ key, count }) => {
      const spec = this.#specs.get(key);
      return spec === undefined || count === 0 ? [] : [{ key, spec, count }];
    });
  }

  /** Older requests have almost no weight. */
  get #keptRequests(): number {
    return 16 * this.#capacity;
  }

  #trim(atMs: number): void {
    this.#requests = this.#requests.filter((request) => atMs - request.atMs < this.#maxAgeMs).slice(-this.#keptRequests);
    const kept = new Set(this.#requests.map(({ key }) => key));
    for (const key of this.#specs.keys()) if (!kept.has(key)) this.#specs.delete(key);
  }
}

/** Equal for equal specs, regardless of the order of their fields. */
export function toKey(spec: SandboxSpec): string {
  return JSON.stringify(spec, (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}

/** Rounds each share down, then gives the rest to the largest fractions; among equals, to the first. */
function shareOut(wanted: readonly { key: string; weight: number }[], capacity: number): { key: string; count: number }[] {
  const total = wanted.reduce((sum, { weight }) => sum + weight, 0);
  const parts = wanted.map(({ key, weight }) => ({ key, exact: (capacity * weight) / total }));
  const left = capacity - parts.reduce((sum, { exact }) => sum + Math.floor(exact), 0);
  const byFraction = parts.toSorted((a, b) => (b.exact % 1) - (a.exact % 1));
  return byFraction.map(({ key, exact }, rank) => ({ key, count: Math.floor(exact) + (rank < left ? 1 : 0) }));
}
