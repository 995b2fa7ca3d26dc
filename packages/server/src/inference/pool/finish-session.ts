// Tells a backend that a rollout's session is over, for routers in front of the servers that count open sessions. Nobody waits
// for it, and a server that has no such route is not asked twice.

import { type Dispatcher, request } from 'undici';
import { type Clock, systemClock } from '../../base/clock.ts';
import type { BackendRecord } from '../backends/backend.ts';

const timeoutMs = 10_000;

export class SessionEnds {
  readonly #dispatcher: Dispatcher;
  readonly #clock: Clock;
  /** Addresses that have no such route. */
  readonly #without = new Set<string>();

  constructor(dispatcher: Dispatcher, clock: Clock = systemClock) {
    this.#dispatcher = dispatcher;
    this.#clock = clock;
  }

  tell({ url, apiKey }: BackendRecord, sessionId: string): void {
    if (!this.#without.has(url)) void this.#post(url, sessionId, apiKey);
  }

  /** Never rejects: a session that a router forgets by itself later is no harm. */
  async #post(url: string, sessionId: string, apiKey: string | undefined): Promise<void> {
    const timeout = new AbortController();
    const stop = this.#clock.after(timeoutMs, () => timeout.abort());
    try {
      const { statusCode, body } = await request(`${url}/finish_session?session_id=${encodeURIComponent(sessionId)}`, {
        method: 'POST',
        dispatcher: this.#dispatcher,
        signal: timeout.signal,
        headers: { 'x-session-id': sessionId, ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }) },
      });
      if (statusCode === 404 || statusCode === 405 || statusCode === 501) this.#without.add(url);
      await body.dump();
    } catch {
      // The server is gone or slow: so is its memory of the session.
    } finally {
      stop();
    }
  }
}
