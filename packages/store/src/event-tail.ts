// The one reader of the event log in a process. Subscribers get every event after the start position, in order and once.

import { type Clock, pauseAfter } from '@millrace/base/clock';
import { type Log, stackOf } from '@millrace/base/log';
import { definedOf, type Event, type EventKind, messageOf } from '@millrace/protocol';
import type { Store } from './store.ts';

/** What a worker waits for. Most events are none of these: turns, moves and ends. */
export const workerEvents = [
  'rollout-queue',
  'rollout-cancel',
  'backend-join',
  'backend-drain',
  'backend-leave',
  'backend-break',
  'backend-recovered',
  'backend-changed',
  'policy-pause',
  'policy-resume',
] as const satisfies readonly EventKind[];

interface EventTailOptions {
  readonly store: Pick<Store, 'events' | 'onHint'>;
  /** The tail starts with the first event above this id. */
  readonly after: number;
  readonly kinds?: readonly EventKind[];
  /** The most events in one read. */
  readonly limit?: number;
  /** The least time between two reads, for a process whose other work must not wait for them; longer while reads are slow. None by default. */
  readonly gapMs?: number;
  readonly clock: Clock;
  readonly log: Log;
}

type EventListener = (events: readonly Event[]) => void;

const pollMs = 1_000;
/** A cancelled rollout must stop within a second. */
const longestGapMs = 500;

/** Reads on a hint from the store, and once a second in case a hint was lost. A listener gets the events read after it subscribed. */
export class EventTail implements AsyncDisposable {
  readonly #options: EventTailOptions;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #listeners = new Set<EventListener>();
  readonly #stopHints: () => void;
  #stopPoll: () => void = () => {};
  #after: number;
  #reading: Promise<void> | undefined;
  #again = false;
  #stopGap: (() => void) | undefined;
  #closed = false;

  constructor(options: EventTailOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#after = options.after;
    this.#stopHints = options.store.onHint(() => this.#wake());
    this.#poll();
  }

  subscribe(listener: EventListener): () => void {
    const own: EventListener = (events) => listener(events);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#stopHints();
    this.#stopPoll();
    this.#stopGap?.();
    this.#listeners.clear();
    await this.#reading;
  }

  #poll(): void {
    this.#wake();
    this.#stopPoll = this.#clock.after(pollMs, () => this.#poll());
  }

  #wake(): void {
    this.#again = true;
    if (!this.#stopGap) this.#reading ??= this.#readAll();
  }

  /** What wakes the tail meanwhile is read after the gap. */
  #startGap(tookMs: number): void {
    const { gapMs = 0 } = this.#options;
    if (gapMs === 0 || this.#closed) return;
    this.#stopGap = this.#clock.after(pauseAfter(tookMs, { leastMs: gapMs, mostMs: longestGapMs }), () => {
      this.#stopGap = undefined;
      if (this.#again && !this.#closed) this.#wake();
    });
  }

  async #readAll(): Promise<void> {
    const { store, kinds, limit = 1_000 } = this.#options;
    try {
      while (this.#again && !this.#closed) {
        this.#again = false;
        const startedAt = this.#clock.monotonic();
        const { events, last } = await store.events(this.#after, definedOf({ limit, kinds }));
        if (events.length === limit) this.#again = true;
        this.#after = last;
        if (events.length > 0) this.#notify(events);
        if (events.length < limit) {
          this.#startGap(this.#clock.monotonic() - startedAt);
          if (this.#stopGap) return;
        }
      }
    } catch (error) {
      this.#log.error('event-tail-read-failed', { after: this.#after, error: messageOf(error) });
    } finally {
      this.#reading = undefined;
    }
  }

  #notify(events: readonly Event[]): void {
    for (const listener of this.#listeners) {
      try {
        listener(events);
      } catch (error) {
        this.#log.error('event-listener-failed', { error: stackOf(error) });
      }
    }
  }
}
