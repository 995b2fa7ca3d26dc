// What the service does now, for all pages that show it: the event stream says that something changed, and the status is read again, at
// most once a second. After a lost connection it starts from the current state, so nothing old is left on the page.

import type { Event, ServiceStatus } from '@millrace/protocol';
import { openEventLines } from '../logic/event-lines.ts';
import { authorization } from './key.ts';
import { request, toRequestError } from './request.ts';

export interface RateSample {
  /** Seconds since 1970. */
  readonly at: number;
  readonly tokensPerS: number;
  readonly rolloutsPerS: number;
  readonly meanReward: number | null;
}

export interface LiveState {
  readonly link: 'connecting' | 'live' | 'lost';
  readonly status?: ServiceStatus;
  readonly samples: readonly RateSample[];
  /** Newest first. */
  readonly events: readonly Event[];
  /** Grows with every event about a rollout: lists read again. */
  readonly revision: number;
}

const mostSamples = 900;
const mostEvents = 200;
const refreshMs = 1000;
const quietRefreshMs = 5000;
const longestRetryMs = 5000;

export class LiveFeed {
  #state: LiveState = { link: 'connecting', samples: [], events: [], revision: 0 };
  readonly #listeners = new Set<() => void>();
  readonly #closed = new AbortController();
  #isReading = false;
  #readAt = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  start(): void {
    void this.#follow();
  }

  close(): void {
    this.#closed.abort();
    clearTimeout(this.#timer);
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly read = (): LiveState => this.#state;

  #set(change: Partial<LiveState>): void {
    this.#state = { ...this.#state, ...change };
    for (const listener of this.#listeners) listener();
  }

  async #follow(): Promise<void> {
    let retryMs = 250;
    while (!this.#closed.signal.aborted) {
      try {
        await this.#readStatus();
        await this.#stream(() => {
          retryMs = 250;
        });
      } catch {
        // Lost or refused: tried again below, and the page says so.
      }
      if (this.#closed.signal.aborted) return;
      this.#set({ link: 'lost' });
      await new Promise((resolve) => setTimeout(resolve, retryMs));
      retryMs = Math.min(longestRetryMs, retryMs * 2);
    }
  }

  async #stream(onOpen: () => void): Promise<void> {
    const response = await fetch('/dashboard/api/live', { headers: authorization(), signal: this.#closed.signal });
    if (!response.ok || response.body === null) throw await toRequestError(response);
    onOpen();
    this.#set({ link: 'live', revision: this.#state.revision + 1 });
    const read = openEventLines();
    const decoder = new TextDecoder();
    for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) {
      const events = read(decoder.decode(piece, { stream: true })).map(({ data }) => JSON.parse(data) as Event);
      if (events.length > 0) this.#take(events);
    }
  }

  #take(events: readonly Event[]): void {
    const shown = [...events.toReversed(), ...this.#state.events].slice(0, mostEvents);
    const isChange = events.some(({ kind }) => kind !== 'turn-end' && kind !== 'backend-traffic');
    this.#set({ events: shown, ...(isChange ? { revision: this.#state.revision + 1 } : {}) });
    this.#schedule(refreshMs - (performance.now() - this.#readAt));
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#readStatus().catch(() => {}), Math.max(0, ms)); // a lost service is noticed by the stream
  }

  async #readStatus(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    this.#readAt = performance.now();
    try {
      const status = await request<ServiceStatus>('/v1/status', { signal: this.#closed.signal });
      const { recent } = status;
      const sample = {
        at: Date.now() / 1000,
        tokensPerS: status.tokens_per_s,
        rolloutsPerS: recent.ended / recent.seconds,
        meanReward: recent.mean_reward,
      };
      this.#set({ status, samples: [...this.#state.samples, sample].slice(-mostSamples) });
    } finally {
      this.#isReading = false;
      if (!this.#closed.signal.aborted) this.#schedule(this.#state.link === 'live' ? quietRefreshMs : longestRetryMs);
    }
  }
}
