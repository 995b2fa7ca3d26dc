// Notices when time cannot be trusted, because the date stepped or the store stalled, so that no lease is revoked and no row is
// deleted for it.

import { type Clock, systemClock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';

/** The date may differ from the elapsed time by this much between two checks. */
const toleranceMs = 1000;
/** A server looks at the leases every second: twice that is no sign that it was stopped. */
const longestGapMs = 3000;

interface TimeGuardOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** When the store last changed before it was opened; absent for a new store. */
  readonly changedAtMs?: number;
  /** When another process, or this one before a restart, saw the date step; by the date after the step. */
  readonly jumpedAtMs?: number;
}

export class TimeGuard {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #openedAt: number;
  /** The time between the last change and the opening: a service that was off, or a date that is wrong. */
  readonly #closedMs: number;
  #originMs: number;
  #jumpedAt = Number.NEGATIVE_INFINITY;
  /** Only until this process sees a step itself: from then on the date of an earlier one means nothing. */
  #jumpedBeforeMs: number | undefined;
  #hasJumped = false;
  #stallMs = 0;
  #lookedAt = Number.POSITIVE_INFINITY;

  constructor({ clock, log, changedAtMs, jumpedAtMs }: TimeGuardOptions) {
    this.#clock = clock;
    this.#log = log;
    this.#openedAt = clock.monotonic();
    this.#originMs = clock.now() - this.#openedAt;
    this.#closedMs = changedAtMs === undefined ? 0 : clock.now() - changedAtMs;
    this.#jumpedBeforeMs = jumpedAtMs;
  }

  /** Measures a write. */
  async time<T>(write: Promise<T>): Promise<T> {
    const startedAt = this.#clock.monotonic();
    try {
      return await write;
    } finally {
      this.#stallMs = Math.max(this.#stallMs, this.#clock.monotonic() - startedAt);
    }
  }

  /** No worker could renew its lease for this long. */
  noteStall(ms: number): void {
    this.#stallMs = Math.max(this.#stallMs, ms);
  }

  /** Whether the date stepped, or the store was closed for longer than rows are kept: the next process has to know. */
  hasDoubts(keptMs: number): boolean {
    this.#check();
    return this.#hasJumped || this.#closedMs > keptMs;
  }

  get hasJumped(): boolean {
    return this.#hasJumped;
  }

  /** Whether leases may have run out although their workers live. True until `trustLeases`. */
  doubtsLeases(leaseMs: number): boolean {
    this.#check();
    // A process that was stopped could not renew for the workers that it serves.
    const lookedAt = systemClock.monotonic();
    if (lookedAt - this.#lookedAt >= Math.max(leaseMs / 2, longestGapMs)) this.noteStall(lookedAt - this.#lookedAt);
    this.#lookedAt = lookedAt;
    const hasStalled = this.#stallMs >= leaseMs / 2;
    if (hasStalled) this.#log.warn('store-stall', { stallMs: Math.round(this.#stallMs), leaseMs });
    return hasStalled || this.#hasJumped;
  }

  trustLeases(): void {
    this.#hasJumped = false;
    this.#stallMs = 0;
  }

  /** False until rows of before a jump are `keptMs` old by elapsed time. */
  mayRetain(keptMs: number): boolean {
    this.#check();
    const now = this.#clock.monotonic();
    const since = this.#closedMs > keptMs ? Math.max(this.#jumpedAt, this.#openedAt) : this.#jumpedAt;
    const sinceBeforeMs = this.#jumpedBeforeMs === undefined ? keptMs : this.#clock.now() - this.#jumpedBeforeMs;
    return now - since >= keptMs && sinceBeforeMs >= keptMs;
  }

  #check(): void {
    const monotonicMs = this.#clock.monotonic();
    const originMs = this.#clock.now() - monotonicMs;
    const jumpMs = originMs - this.#originMs;
    this.#originMs = originMs;
    if (Math.abs(jumpMs) <= toleranceMs) return;
    this.#log.warn('clock-jump', { jumpMs: Math.round(jumpMs) });
    this.#jumpedAt = monotonicMs;
    this.#jumpedBeforeMs = undefined;
    this.#hasJumped = true;
  }
}
