// How the running calls of this process on one backend get on: a slow engine, and one that does nothing, can be told apart.

import type { CallProgressReport } from '@millrace/protocol';
import type { Clock } from '../../base/clock.ts';
import { TokenRate } from './token-rate.ts';

/** A call that runs. */
export interface RunningCall {
  readonly startedAt: number;
  /** Absent until its first token has arrived. */
  lastTokenAt?: number;
}

export class CallProgress {
  readonly #clock: Clock;
  readonly #rate: TokenRate;
  readonly #running = new Set<RunningCall>();
  #tokens = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#rate = new TokenRate(clock);
  }

  get calls(): number {
    return this.#running.size;
  }

  start(): RunningCall {
    const call: RunningCall = { startedAt: this.#clock.monotonic() };
    this.#running.add(call);
    return call;
  }

  addTokens(call: RunningCall, tokens: number): void {
    call.lastTokenAt = this.#clock.monotonic();
    this.#tokens += tokens;
  }

  end(call: RunningCall): void {
    this.#running.delete(call);
  }

  /** Absent while no call runs. */
  read(): CallProgressReport | undefined {
    const tokens_per_s = this.#rate.read(this.#tokens);
    if (this.#running.size === 0) return undefined;
    const now = this.#clock.monotonic();
    const [starts, tokens] = [
      [...this.#running].map(({ startedAt }) => startedAt),
      [...this.#running].flatMap((call) => call.lastTokenAt ?? []),
    ];
    return {
      oldest_call_ms: Math.round(now - Math.min(...starts)),
      last_token_ms: tokens.length === 0 ? null : Math.round(now - Math.max(...tokens)),
      tokens_per_s,
    };
  }
}
