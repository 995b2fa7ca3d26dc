// The event log as server-sent events for any number of readers. The newest events are cached in rendered form for readers that
// keep up. A reader that falls behind reads pages from the store at its own pace, so a slow reader costs no memory.

import { type Clock, sleep } from '@millrace/base/clock';
import type { Event } from '@millrace/protocol';
import type { Store } from '@millrace/store';

const mostKept = 4096;
const pageSize = 500;
const heartbeatMs = 15_000;

interface Page {
  readonly text: string;
  readonly last: number;
}

export class EventFeed {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #wakers = new Set<() => void>();
  #kept: { readonly id: number; readonly text: string }[] = [];
  /** Every event above this id is cached; absent before the first event. */
  #keptFrom: number | undefined;
  #newest = 0;
  #closed = false;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  push(events: readonly Event[]): void {
    const first = events[0];
    if (first === undefined) return;
    this.#keptFrom ??= first.id - 1;
    for (const event of events) {
      this.#kept.push({ id: event.id, text: render(event) });
      this.#newest = event.id;
    }
    const dropped = this.#kept.length > mostKept ? this.#kept.splice(0, this.#kept.length - mostKept / 2) : [];
    this.#keptFrom = dropped.at(-1)?.id ?? this.#keptFrom;
    this.#wakeAll();
  }

  /** Ends all streams. */
  close(): void {
    this.#closed = true;
    this.#wakeAll();
  }

  /**
   * Events with ids above `after`, until the signal aborts or the feed is closed. It also ends when retention deleted events that
   * the reader has not seen: when it resumes, the route says so.
   */
  async *stream(after: number, signal: AbortSignal): AsyncGenerator<string> {
    yield ': open\n\n';
    let position = after;
    while (!signal.aborted && !this.#closed) {
      const page = this.#recent(position) ?? (await this.#stored(position));
      if (page === undefined) return;
      position = page.last;
      if (page.text !== '') yield page.text;
      else if ((await this.#change(position, signal)) === 'none') yield ': alive\n\n';
    }
  }

  /** Of what is new from now on, at most a page every `paceMs`: a reader that only shows it costs little, however much happens. */
  async *glance(paceMs: number, signal: AbortSignal): AsyncGenerator<string> {
    yield ': open\n\n';
    let position = await this.#store.lastEventId();
    while (!signal.aborted && !this.#closed) {
      const isNew = (await this.#change(position, signal)) === 'some';
      position = Math.max(position, this.#newest - pageSize, this.#keptFrom ?? 0);
      const page = isNew ? this.#recent(position) : undefined;
      position = page?.last ?? position;
      yield page === undefined || page.text === '' ? ': alive\n\n' : page.text;
      await sleep(paceMs, { clock: this.#clock, signal }).catch(() => {}); // aborted: the loop ends
    }
  }

  #recent(after: number): Page | undefined {
    if (this.#keptFrom === undefined || after < this.#keptFrom) return undefined;
    if (after >= this.#newest) return { text: '', last: after };
    let start = this.#kept.length;
    while ((this.#kept[start - 1]?.id ?? 0) > after) start -= 1;
    const page = this.#kept.slice(start, start + pageSize);
    return { text: page.map(({ text }) => text).join(''), last: page.at(-1)?.id ?? after };
  }

  /** Undefined when events after `after` were deleted. */
  async #stored(after: number): Promise<Page | undefined> {
    const { events, last } = await this.#store.events(after, { limit: pageSize });
    if (after > 0 && (events[0]?.id ?? last + 1) > after + 1 && (await this.#store.oldestEventId()) > after + 1) return undefined;
    return { text: events.map(render).join(''), last };
  }

  async #change(after: number, signal: AbortSignal): Promise<'some' | 'none'> {
    if (this.#newest > after || signal.aborted || this.#closed) return 'some';
    const { promise, resolve } = Promise.withResolvers<'some' | 'none'>();
    const wake = () => resolve('some');
    this.#wakers.add(wake);
    signal.addEventListener('abort', wake, { once: true });
    const stopTimer = this.#clock.after(heartbeatMs, () => resolve('none'));
    const change = await promise;
    stopTimer();
    signal.removeEventListener('abort', wake);
    this.#wakers.delete(wake);
    return change;
  }

  #wakeAll(): void {
    for (const wake of this.#wakers) wake();
  }
}

function render(event: Event): string {
  return `id: ${event.id}\nevent: ${event.kind}\ndata: ${JSON.stringify(event)}\n\n`;
}
