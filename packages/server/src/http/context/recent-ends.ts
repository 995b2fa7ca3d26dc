// The rollouts that ended in the last minute: their rate gives the Retry-After of a full queue, and their rewards show how the
// policy is doing. Counted in memory from the event log, one entry per second.

import type { Clock } from '@millrace/base/clock';
import type { Event, RecentEndsView } from '@millrace/protocol';
import { z } from 'zod';

const windowSeconds = 60;

/** Lenient: an event that lacks a field is counted without it. */
const endData = z.object({ state: z.string().catch(''), reward: z.number().optional().catch(undefined) });

interface EndsOfSecond {
  readonly second: number;
  ended: number;
  failed: number;
  rewarded: number;
  rewardSum: number;
}

export class RecentEnds {
  readonly #clock: Clock;
  /** Oldest first. */
  #seconds: EndsOfSecond[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  push(events: readonly Event[]): void {
    for (const { kind, data } of events) if (kind === 'rollout-end') this.#count(endData.parse(data));
  }

  /** Whole seconds, 1 to 60, until about `count` rollouts will have ended. */
  secondsFor(count: number): number {
    const second = this.#now();
    const recent = this.#recent(second);
    const first = recent[0];
    if (first === undefined) return windowSeconds;
    const perSecond = sum(recent.map(({ ended }) => ended)) / (second - first.second + 1);
    return Math.min(windowSeconds, Math.max(1, Math.ceil(count / perSecond)));
  }

  read(): RecentEndsView {
    const recent = this.#recent(this.#now());
    const rewarded = sum(recent.map((one) => one.rewarded));
    return {
      seconds: windowSeconds,
      ended: sum(recent.map(({ ended }) => ended)),
      failed: sum(recent.map(({ failed }) => failed)),
      rewarded,
      mean_reward: rewarded === 0 ? null : sum(recent.map(({ rewardSum }) => rewardSum)) / rewarded,
    };
  }

  #count({ state, reward }: z.infer<typeof endData>): void {
    const ends = this.#current();
    ends.ended += 1;
    if (state === 'failed') ends.failed += 1;
    if (reward === undefined) return;
    ends.rewarded += 1;
    ends.rewardSum += reward;
  }

  #current(): EndsOfSecond {
    const second = this.#now();
    const newest = this.#seconds.at(-1);
    if (newest?.second === second) return newest;
    const added = { second, ended: 0, failed: 0, rewarded: 0, rewardSum: 0 };
    this.#seconds = [...this.#recent(second), added];
    return added;
  }

  #now(): number {
    return Math.floor(this.#clock.monotonic() / 1000);
  }

  #recent(second: number): EndsOfSecond[] {
    return this.#seconds.filter((one) => one.second > second - windowSeconds);
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
