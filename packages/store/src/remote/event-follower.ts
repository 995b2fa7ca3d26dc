// What workers wait for, from a server: one request at a time is answered when something happens, and what it brought is read here. So a
// worker that waits costs a server one request every twenty seconds, and an event one answer.

import { sleep } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import { type Event, type EventKind, messageOf } from '@millrace/protocol';
import type { ServerCaller } from './server-caller.ts';
import { awaitedKinds, longestWaitMs, type WorkerEventsPage } from './worker-calls.ts';

const mostKept = 2_000;
const pauseMs = 1_000;

export class EventFollower implements AsyncDisposable {
  readonly #caller: ServerCaller;
  readonly #log: Log;
  readonly #listeners = new Set<() => void>();
  #following: { readonly abort: AbortController; readonly ended: Promise<void> } | undefined;
  /** All events that workers wait for, with ids above `from` and up to `last`. */
  #known: { readonly from: number; readonly last: number; readonly events: readonly Event[] } | undefined;

  constructor(caller: ServerCaller, log: Log) {
    this.#caller = caller;
    this.#log = log;
  }

  subscribe(listener: () => void): () => void {
    const own = () => listener();
    this.#listeners.add(own);
    if (!this.#following) {
      const abort = new AbortController();
      this.#following = { abort, ended: this.#follow(abort.signal) };
    }
    return () => {
      this.#listeners.delete(own);
      if (this.#listeners.size === 0) void this[Symbol.asyncDispose]();
    };
  }

  /** Undefined if a server has to be asked. */
  read(after: number, { limit, kinds }: { readonly limit: number; readonly kinds?: readonly EventKind[] }): WorkerEventsPage | undefined {
    const awaited: readonly EventKind[] = awaitedKinds;
    if (!this.#known || after < this.#known.from || !kinds?.every((kind) => awaited.includes(kind))) return undefined;
    const found = this.#known.events.filter(({ id, kind }) => id > after && kinds.includes(kind));
    const page = found.slice(0, limit);
    return { events: page, last: found.length > limit ? (page.at(-1)?.id ?? after) : Math.max(after, this.#known.last) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const following = this.#following;
    this.#following = undefined;
    this.#known = undefined;
    following?.abort.abort();
    await following?.ended;
  }

  async #follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        const after = this.#known?.last ?? -1;
        const request = { after, waitMs: longestWaitMs };
        const reply = await this.#caller.call({ name: 'awaitEvents', toRequest: () => request, signal, waitMs: longestWaitMs });
        this.#add(reply as WorkerEventsPage, after);
      } catch (error) {
        if (signal.aborted) return;
        this.#log.warn('server-events-failed', { error: messageOf(error) });
        await sleep(pauseMs, { signal }).catch(() => {}); // Closing ends the pause.
      }
    }
  }

  #add({ events, last }: WorkerEventsPage, after: number): void {
    const { from, events: before } = this.#known ?? { from: last, events: [] };
    const all = [...before, ...events];
    const dropped = all.length > mostKept ? all.splice(0, all.length - mostKept / 2) : [];
    this.#known = { from: dropped.at(-1)?.id ?? from, last: Math.max(last, after), events: all };
    if (events.length > 0 || after < 0) for (const listener of this.#listeners) listener();
  }
}
