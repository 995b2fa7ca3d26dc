// Where rollouts wait for one KV cache. Each waits for its own signal too, and all of them go if the backend does.

import type { Clock } from '@millrace/base/clock';
import { raceSignal } from '@millrace/base/race';
import { CacheAdmission, type CacheAsk, type CacheCall, type CacheView } from './cache-admission.ts';

/** How often the rule is asked again while any rollout is held: a tool may have taken too long since. */
const checkMs = 1000;
/** The rule looks at all rollouts. However many turns start and end, it is not asked more often than this. */
const paceMs = 50;

export class CacheGate {
  readonly #clock: Clock;
  readonly #admission: CacheAdmission;
  readonly #waiting = new Map<string, () => void>();
  #decidedMs = Number.NEGATIVE_INFINITY;
  #stopTimer: (() => void) | undefined;

  constructor(clock: Clock, capacityTokens: number | undefined) {
    this.#clock = clock;
    this.#admission = new CacheAdmission(capacityTokens);
  }

  get view(): CacheView {
    return this.#admission.view;
  }

  /** Undefined if the turn may start at once; otherwise resolves when it may. A rollout that stops waiting has left, unless it asks again. */
  enter(ask: CacheAsk, signal: AbortSignal): Promise<void> | undefined {
    return this.#admission.ask(ask, this.#clock.monotonic()) ? undefined : this.#wait(ask, signal);
  }

  async #wait(ask: CacheAsk, signal: AbortSignal): Promise<void> {
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

  grow(id: string, sampledTokens: number): void {
    this.#admission.grow(id, sampledTokens);
  }

  /** Returns how much of its prompt the engine was expected to have. */
  endCall(call: CacheCall): number {
    const expectedTokens = this.#admission.endCall(call, this.#clock.monotonic());
    this.#wake();
    return expectedTokens;
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

  get keptTokens(): number {
    return this.#admission.keptTokens;
  }

  asleep(): readonly string[] {
    return this.#admission.asleep(this.#clock.monotonic());
  }

  divide(oldest: ReadonlySet<string> | undefined): void {
    this.#admission.divide(oldest);
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
    const nowMs = this.#clock.monotonic();
    const earlyMs = this.#decidedMs + paceMs - nowMs;
    if (this.#waiting.size > 0 && earlyMs <= 0) this.#decide(nowMs);
    this.#stopTimer?.();
    this.#stopTimer = this.#waiting.size > 0 ? this.#clock.after(earlyMs > 0 ? earlyMs : checkMs, () => this.#wake()) : undefined;
  }

  #decide(nowMs: number): void {
    this.#decidedMs = nowMs;
    for (const id of this.#admission.next(nowMs)) {
      const go = this.#waiting.get(id);
      this.#waiting.delete(id);
      go?.();
    }
  }
}
