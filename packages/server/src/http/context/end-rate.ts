// How many rollouts end in a second, over the last minute: what tells a caller when the queue will have room.

import type { Event } from '@millrace/protocol';
import type { Clock } from '../../base/clock.ts';

const windowSeconds = 60;

export class EndRate {
  readonly #clock: Clock;
  /** Ends by second, oldest first. */
  #seconds: { readonly second: number; ends: number }[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  push(events: readonly Event[]): void {
    const ends = events.filter((event) => event.kind === 'rollout-end').length;
    if (ends === 0) return;
    const second = Math.floor(this.#clock.monotonic() / 1000);
    const newest = this.#seconds.at(-1);
    if (newest?.second === second) newest.ends += ends;
    else this.#seconds = [...this.#recent(second), { second, ends }];
  }

  /** Whole seconds, 1 to 60, until about `count` rollouts will have ended. */
  secondsFor(count: number): number {
    const second = Math.floor(this.#clock.monotonic() / 1000);
    const recent = this.#recent(second);
    const first = recent[0];
    if (first === undefined) return windowSeconds;
    const ends = recent.reduce((total, one) => total + one.ends, 0);
    const perSecond = ends / (second - first.second + 1);
    return Math.min(windowSeconds, Math.max(1, Math.ceil(count / perSecond)));
  }

  #recent(second: number) {
    return this.#seconds.filter((one) => one.second > second - windowSeconds);
  }
}
