// Informs a router in front of the servers that a rollout's session is over, for routers that count open sessions. No call waits
// for it. An engine that is known to answer by itself is not asked, because its log would have the failed request; any other server
// without that route is asked only once.

import type { Clock } from '@millrace/base/clock';
import { type BackendRecord, toSessionAddress } from '@millrace/engines';
import { type Dispatcher, request } from 'undici';

const timeoutMs = 10_000;

export class SessionFinisher {
  readonly #dispatcher: Dispatcher;
  readonly #clock: Clock;
  /** Addresses without the route. */
  readonly #unsupported = new Set<string>();

  constructor(dispatcher: Dispatcher, clock: Clock) {
    this.#dispatcher = dispatcher;
    this.#clock = clock;
  }

  finish({ url, apiKey, probe }: BackendRecord, sessionId: string): void {
    const isOneEngine = probe?.instance !== undefined && !probe.isSeveral;
    if (!isOneEngine && !this.#unsupported.has(url)) void this.#post(url, sessionId, apiKey);
  }

  /** Never rejects: a session that a router only forgets later does no harm. */
  async #post(url: string, sessionId: string, apiKey: string | undefined): Promise<void> {
    const timeout = new AbortController();
    const stop = this.#clock.after(timeoutMs, () => timeout.abort());
    try {
      const { statusCode, body } = await request(
        `${toSessionAddress(url, sessionId)}/finish_session?session_id=${encodeURIComponent(sessionId)}`,
        {
          method: 'POST',
          dispatcher: this.#dispatcher,
          signal: timeout.signal,
          headers: { 'x-session-id': sessionId, ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }) },
        },
      );
      if (statusCode === 404 || statusCode === 405 || statusCode === 501) this.#unsupported.add(url);
      await body.dump();
    } catch {
      // The server is gone or slow, and its record of the session with it.
    } finally {
      stop();
    }
  }
}
