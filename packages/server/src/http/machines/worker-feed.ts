// What workers wait for, for any number of workers that wait at this server: they are answered from memory, all together, and the less often
// the more of them wait.

import type { Clock } from '@millrace/base/clock';
import type { Event, EventKind } from '@millrace/protocol';
import { awaitedKinds, type Store, type WorkerEventsPage } from '@millrace/store';

const mostKept = 4_096;
const pageSize = 1_000;
/** The first event after a quiet time is passed on at once; the next ones together, after a pause that grows with those who wait. */
const pause = { leastMs: 20, mostMs: 500, eachMs: 0.5 };

export class WorkerFeed {
  readonly #store: Pick<Store, 'events' | 'lastEventId'>;
  readonly #clock: Clock;
  readonly #wakers = new Set<() => void>();
  /** Those with ids above `from`, which is absent before the first event. */
  #kept: Event[] = [];
  #from: number | undefined;
  #last = 0;
  #wokenAt = Number.NEGATIVE_INFINITY;
  #stopPause: (() => void) | undefined;
  #isClosed = false;

  constructor(store: Pick<Store, 'events' | 'lastEventId'>, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  get waiting(): number {
    return this.#wakers.size;
  }

  push(events: readonly Event[]): void {
    const [first, last] = [events[0], events.at(-1)];
    if (!first || !last) return;
    this.#from ??= first.id - 1;
    this.#last = last.id;
    const awaited = events.filter(isAwaited);
    if (awaited.length === 0) return;
    this.#kept.push(...awaited);
    const dropped = this.#kept.length > mostKept ? this.#kept.splice(0, this.#kept.length - mostKept / 2) : [];
    this.#from = dropped.at(-1)?.id ?? this.#from;
    this.#wake();
  }

  close(): void {
    this.#isClosed = true;
    this.#stopPause?.();
    this.#wakeAll();
  }

  /** What happened after this event, as soon as something did; nothing when the time is over. Before the first event: where the log is. */
  async read(after: number, waitMs: number, signal: AbortSignal): Promise<WorkerEventsPage> {
    if (after < 0) return { events: [], last: this.#from === undefined ? await this.#store.lastEventId() : this.#last };
    if (this.#from === undefined || after < this.#from) {
      const page = await this.#store.events(after, { limit: pageSize, kinds: awaitedKinds });
      if (page.events.length > 0) return page;
    }
    if (this.#find(after).length === 0 && !this.#isClosed && !signal.aborted) await this.#change(waitMs, signal);
    const events = this.#find(after).slice(0, pageSize);
    return { events, last: events.length === pageSize ? (events.at(-1)?.id ?? after) : Math.max(after, this.#last) };
  }

  #find(after: number): Event[] {
    let start = this.#kept.length;
    while ((this.#kept[start - 1]?.id ?? 0) > after) start -= 1;
    return this.#kept.slice(start);
  }

  async #change(waitMs: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wakers.add(resolve);
    signal.addEventListener('abort', () => resolve(), { once: true });
    const stop = this.#clock.after(waitMs, resolve);
    await promise;
    stop();
    this.#wakers.delete(resolve);
  }

  #wake(): void {
    if (this.#stopPause || this.#wakers.size === 0) return;
    const pauseMs = Math.min(pause.mostMs, pause.leastMs + pause.eachMs * this.#wakers.size);
    const leftMs = this.#wokenAt + pauseMs - this.#clock.monotonic();
    if (leftMs <= 0) this.#wakeAll();
    else
      this.#stopPause = this.#clock.after(leftMs, () => {
        this.#stopPause = undefined;
        this.#wakeAll();
      });
  }

  #wakeAll(): void {
    this.#wokenAt = this.#clock.monotonic();
    for (const wake of this.#wakers) wake();
  }
}

const awaited: ReadonlySet<EventKind> = new Set(awaitedKinds);

function isAwaited({ kind }: Event): boolean {
  return awaited.has(kind);
}
