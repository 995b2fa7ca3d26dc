// How the running calls of this process on one backend get on: shows whether an engine is slow or does nothing.

import type { Clock } from '@millrace/base/clock';
import type { CallProgressReport } from '@millrace/protocol';
import { TokenRate } from './token-rate.ts';

/** A call that runs. */
export interface CallInFlight {
  readonly startedAt: number;
  /** Absent until its first token has arrived. */
  lastTokenAt?: number;
}

export class CallProgress {
  readonly #clock: Clock;
  readonly #rate: TokenRate;
  readonly #running = new Set<CallInFlight>();
  #tokens = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#rate = new TokenRate(clock);
  }

  get calls(): number {
    return this.#running.size;
  }

  start(): CallInFlight {
    const call: CallInFlight = { startedAt: this.#clock.monotonic() };
    this.#running.add(call);
    return call;
  }

  addTokens(call: CallInFlight, tokens: number): void {
    call.lastTokenAt = this.#clock.monotonic();
    this.#tokens += tokens;
  }

  end(call: CallInFlight): void {
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

/** Of each backend with calls, by its id. */
export function readProgress(
  entries: Iterable<{ readonly id: string; readonly progress: CallProgress }>,
): Record<string, CallProgressReport> {
  const found: Record<string, CallProgressReport> = {};
  for (const { id, progress } of entries) {
    const read = progress.read();
    if (read) found[id] = read;
  }
  return found;
}
