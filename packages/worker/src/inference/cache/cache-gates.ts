// The KV caches of all backends as one worker sees them: one for each data-parallel rank. Workers that share a backend divide its caches by the
// age of their rollouts.

import type { Clock } from '@millrace/base/clock';
import type { BackendRecord } from '@millrace/engines';
import type { BackendId } from '@millrace/protocol';
import { CacheGate } from './cache-gate.ts';

interface SharedBackend {
  readonly id: BackendId;
  readonly record: BackendRecord;
  /** Rollouts of this worker on it. */
  readonly leases: number;
}

/** Of all workers. */
interface BackendUse {
  readonly inFlight: number;
  readonly tokens: number;
}

export class CacheGates {
  readonly #clock: Clock;
  readonly #gates = new Map<BackendId, CacheGate[]>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  find({ id, probe }: BackendRecord, rank = 0): CacheGate {
    const gates = this.#gates.get(id) ?? [];
    this.#gates.set(id, gates);
    const gate = gates[rank] ?? new CacheGate(this.#clock, probe?.cacheTokens);
    gates[rank] = gate;
    return gate;
  }

  /** Takes the complete list of records. Rollouts that wait for a backend that left or broke go, to find another. */
  update(records: readonly BackendRecord[]): void {
    for (const [id, gates] of this.#gates) {
      const record = records.find((one) => one.id === id);
      for (const gate of gates) {
        if (!record || record.health?.brokenAtMs !== undefined) gate?.releaseAll();
        else gate?.resize(record.probe?.cacheTokens);
      }
      if (!record) this.#gates.delete(id);
    }
  }

  /** The backends that have rollouts of other workers too, and more contexts than their caches keep over all ranks: how much these do. */
  findShared(
    backends: Iterable<SharedBackend>,
    loads: ReadonlyMap<BackendId, BackendUse>,
  ): { readonly id: BackendId; readonly tokens: number }[] {
    return Array.from(backends).flatMap(({ id, leases, record }) => {
      const gates = this.#gates.get(id)?.filter((gate) => gate !== undefined) ?? [];
      const tokens = ((record.probe?.ranks ?? 1) * sumOf(gates, (gate) => gate.keptTokens)) / gates.length;
      const load = loads.get(id);
      return load && load.inFlight > leases && load.tokens > tokens ? [{ id, tokens: Math.floor(tokens) }] : [];
    });
  }

  /** The rollouts whose tool takes so long that others may have their room, on backends that other workers use too. */
  asleep(backends: Iterable<SharedBackend>, loads: ReadonlyMap<BackendId, BackendUse>): ReadonlySet<string> {
    const isShared = ({ id, leases }: SharedBackend) => (loads.get(id)?.inFlight ?? 0) > leases;
    return new Set([...backends].filter(isShared).flatMap(({ id }) => this.#gates.get(id)?.flatMap((gate) => gate?.asleep() ?? []) ?? []));
  }

  /** Takes, for each backend whose caches are too small for the contexts of all workers, the oldest rollouts that fit. */
  divide(oldest: readonly { readonly id: BackendId; readonly rollouts: readonly string[] }[]): void {
    const found = new Map(oldest.map(({ id, rollouts }) => [id, new Set(rollouts)]));
    for (const [id, gates] of this.#gates) for (const gate of gates) gate?.divide(found.get(id));
  }

  /** Rollouts of this worker that wait for the caches of each backend. */
  held(): Record<string, number> {
    return Object.fromEntries(Array.from(this.#gates, ([id, gates]) => [id, sumOf(gates, (gate) => gate.view.held)]));
  }

  /** All that wait go. */
  close(): void {
    for (const gates of this.#gates.values()) for (const gate of gates) gate?.releaseAll();
  }
}

/** A rank that no lease has chosen yet has no gate. */
function sumOf(gates: readonly (CacheGate | undefined)[], read: (gate: CacheGate) => number): number {
  return gates.reduce((total, gate) => total + (gate ? read(gate) : 0), 0);
}
