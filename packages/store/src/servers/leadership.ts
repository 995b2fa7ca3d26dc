// Which of several servers leads: it alone runs retention and expiry and reports the metrics of the whole service. When it dies, another
// one leads as soon as its lease ends.

import { type Clock, sleep } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import { messageOf } from '@millrace/protocol';
import type { ServerStore } from './server-store.ts';

interface LeadershipDeps {
  readonly store: Pick<ServerStore, 'takeDuty'>;
  /** The same after a restart, and different from that of every other server. */
  readonly server: string;
  readonly clock: Clock;
  readonly log: Log;
}

const leaseMs = 10_000;

export class Leadership implements AsyncDisposable {
  readonly #deps: LeadershipDeps;
  readonly #closing = new AbortController();
  #confirmedAt = Number.NEGATIVE_INFINITY;
  #renewing: Promise<void> | undefined;

  constructor(deps: LeadershipDeps) {
    this.#deps = deps;
  }

  /** Asks once before it returns. */
  async start(): Promise<void> {
    await this.#renew();
    this.#renewing = this.#repeat();
  }

  get isLeader(): boolean {
    return this.#deps.clock.monotonic() - this.#confirmedAt < leaseMs;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#renewing;
    const { store, server } = this.#deps;
    if (this.isLeader) await store.takeDuty({ name: 'lead', holder: server, leaseMs: 0 }).catch(() => {}); // the lease ends by itself
    this.#confirmedAt = Number.NEGATIVE_INFINITY;
  }

  async #repeat(): Promise<void> {
    const { clock } = this.#deps;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await sleep(leaseMs / 3, { clock, signal }).catch(() => {}); // closing ends the pause
      if (!signal.aborted) await this.#renew();
    }
  }

  async #renew(): Promise<void> {
    const { store, server, clock, log } = this.#deps;
    const wasLeader = this.isLeader;
    // Before the call: the lease in the store ends no earlier.
    const askedAt = clock.monotonic();
    try {
      const isLeader = await store.takeDuty({ name: 'lead', holder: server, leaseMs });
      this.#confirmedAt = isLeader ? askedAt : Number.NEGATIVE_INFINITY;
      if (isLeader !== wasLeader) log.info('server-lead', { server, leads: isLeader });
    } catch (error) {
      log.error('housekeeping-failed', { error: messageOf(error) });
    }
  }
}
