// The one reader of the event log in a process. Its subscribers get every event after the first position, in order and once.

import type { Event, EventKind } from '@millrace/protocol';
import { type Clock, systemClock } from '../base/clock.ts';
import { type Log, silentLog } from '../base/log.ts';
import type { Store } from './store.ts';

export interface EventTailOptions {
  readonly store: Store;
  /** The tail begins with the first event above this id. */
  readonly after: number;
  readonly kinds?: readonly EventKind[];
  /** Most events in one read. */
  readonly limit?: number;
  readonly clock?: Clock;
  readonly log?: Log;
}

export type EventListener = (events: readonly Event[]) => void;

const pollMs = 1_000;

/** Reads on a hint of the store, and once a second in case a hint was lost. A listener hears what is read after it came. */
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
  #closed = false;

  constructor(options: EventTailOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#log = options.log ?? silentLog;
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
    this.#listeners.clear();
    await this.#reading;
  }

  #poll(): void {
    this.#wake();
    this.#stopPoll = this.#clock.after(pollMs, () => this.#poll());
  }

  #wake(): void {
    this.#again = true;
    this.#reading ??= this.#readAll();
  }

  async #readAll(): Promise<void> {
    const { store, kinds, limit = 1_000 } = this.#options;
    try {
      while (this.#again && !this.#closed) {
        this.#again = false;
        const { events, last } = await store.events(this.#after, { limit, ...(kinds ? { kinds } : {}) });
        if (events.length === limit) this.#again = true;
        this.#after = last;
        if (events.length > 0) this.#tell(events);
      }
    } catch (error) {
      this.#log.error('event-tail-read-failed', { after: this.#after, error: String(error) });
    } finally {
      this.#reading = undefined;
    }
  }

  #tell(events: readonly Event[]): void {
    for (const listener of this.#listeners) {
      try {
        listener(events);
      } catch (error) {
        this.#log.error('event-listener-failed', { error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
      }
    }
  }
}
