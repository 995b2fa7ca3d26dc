// The KV caches of all backends as one worker sees them: one for each data-parallel rank. Workers that share a backend divide its caches in
// proportion to their contexts.

import type { BackendId } from '@millrace/protocol';
import type { Clock } from '../../base/clock.ts';
import type { BackendRecord } from '../backends/backend.ts';
import { CacheGate } from './cache-gate.ts';

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

  /** Takes the context tokens of all workers on each backend, as last reported, and over how many ranks they are spread. */
  divide(loadOf: (id: BackendId) => { readonly tokens: number; readonly ranks: number }): void {
    for (const [id, gates] of this.#gates) {
      const ownTokens = sumOf(gates, (gate) => gate.view.contextTokens);
      const { tokens, ranks } = loadOf(id);
      for (const gate of gates) gate?.divide(ownTokens / ranks, tokens / ranks);
    }
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
