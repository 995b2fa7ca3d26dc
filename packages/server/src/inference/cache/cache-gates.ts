// The KV caches of all backends as one worker sees them: one for each data-parallel rank.

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

  /** Rollouts of this worker that wait for each cache of a backend, over its ranks. */
  held(): Record<string, number> {
    const sum = (gates: readonly CacheGate[]) => gates.reduce((total, gate) => total + gate.view.held, 0);
    return Object.fromEntries(Array.from(this.#gates, ([id, gates]) => [id, sum(gates)]));
  }
}
