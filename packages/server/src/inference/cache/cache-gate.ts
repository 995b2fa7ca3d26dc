// Where rollouts wait for one KV cache. Each waits for its own signal too, and all of them go if the backend does.

import type { Clock } from '../../base/clock.ts';
import { raceSignal } from '../../base/race.ts';
import { CacheAdmission, type CacheAsk, type CacheCall, type CacheView } from './cache-admission.ts';

/** How often the rule is asked again while any rollout is held: a tool may have taken too long since. */
const checkMs = 1000;

export class CacheGate {
  readonly #clock: Clock;
  readonly #admission: CacheAdmission;
  readonly #waiting = new Map<string, () => void>();
  #stopTimer: (() => void) | undefined;

  constructor(clock: Clock, capacityTokens: number | undefined) {
    this.#clock = clock;
    this.#admission = new CacheAdmission(capacityTokens);
  }

  get view(): CacheView {
    return this.#admission.view;
  }

  /** Resolves when the turn may start. A rollout that stops waiting has left, unless it asks again. */
  async enter(ask: CacheAsk, signal: AbortSignal): Promise<void> {
    if (this.#admission.ask(ask, this.#clock.monotonic())) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.set(ask.id, resolve);
    this.#wake();
    try {
      await raceSignal(promise, signal);
    } catch (error) {
      this.leave(ask.id);
      throw error;
    }
  }

  endCall(call: CacheCall): void {
    this.#admission.endCall(call, this.#clock.monotonic());
    this.#wake();
  }

  leave(id: string): void {
    this.#waiting.delete(id);
    this.#admission.leave(id);
    this.#wake();
  }

  resize(capacityTokens: number | undefined): void {
    this.#admission.resize(capacityTokens ?? Number.POSITIVE_INFINITY);
    this.#wake();
  }

  flush(): void {
    this.#admission.flush();
  }

  /** The backend cannot be used: all that wait for it go, to find another. */
  releaseAll(): void {
    for (const [id, go] of [...this.#waiting]) {
      this.leave(id);
      go();
    }
  }

  #wake(): void {
    for (const id of this.#admission.next(this.#clock.monotonic())) {
      const go = this.#waiting.get(id);
      this.#waiting.delete(id);
      go?.();
    }
    this.#stopTimer?.();
    this.#stopTimer = this.#waiting.size > 0 ? this.#clock.after(checkMs, () => this.#wake()) : undefined;
  }
}
