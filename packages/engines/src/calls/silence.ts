// Watches calls whose server sends nothing. A reply that is not streamed, and one that waits in the server's queue, is silent for
// minutes, so silence alone fails no call: the server is asked for its health, once for all calls that wait. A dead server is noticed
// within about a minute; one that is healthy and hangs, after the limit of the call.

import { type Clock, systemClock } from '@millrace/base/clock';
import { messageOf, RolloutError } from '@millrace/protocol';

interface SilenceLimits {
  /** How long the first byte of the reply may take; 0 means no limit. */
  readonly firstMs: number;
  /** How long each further byte may take. */
  readonly nextMs: number;
}

/** A call under watch. Dispose it when the call has ended. */
export interface WatchedCall extends Disposable {
  /** Aborted with a `backend-failed` if the call is given up. */
  readonly signal: AbortSignal;
  /** Call it for each chunk of the reply's body. */
  noteBytes(): void;
}

interface Call {
  readonly limits: SilenceLimits;
  readonly controller: AbortController;
  lastAt: number;
  hasBytes: boolean;
  stopTimer: () => void;
}

/** How often the health of a server with silent calls is checked. */
const checkMs = 10_000;
/** SGLang takes up to 20 s to say that its scheduler does not respond. */
const checkTimeoutMs = 25_000;
/** A server that is busy with a long prompt may miss one check. */
const checksToFail = 2;

export class SilenceWatch {
  readonly #checkHealth: (signal: AbortSignal) => Promise<void>;
  readonly #clock: Clock;
  readonly #calls = new Set<Call>();
  #failures = 0;
  #stopChecks: (() => void) | undefined;

  /** One for each server. `checkHealth` throws if the server is not healthy. */
  constructor(checkHealth: (signal: AbortSignal) => Promise<void>, clock: Clock = systemClock) {
    this.#checkHealth = checkHealth;
    this.#clock = clock;
  }

  start(limits: SilenceLimits): WatchedCall {
    const call: Call = { limits, controller: new AbortController(), lastAt: this.#clock.monotonic(), hasBytes: false, stopTimer: () => {} };
    this.#calls.add(call);
    this.#armLimit(call);
    this.#stopChecks ??= this.#armCheck();
    return {
      signal: call.controller.signal,
      noteBytes: () => {
        call.lastAt = this.#clock.monotonic();
        if (call.hasBytes) return;
        call.hasBytes = true;
        this.#armLimit(call);
      },
      [Symbol.dispose]: () => this.#end(call),
    };
  }

  #end(call: Call): void {
    call.stopTimer();
    this.#calls.delete(call);
    if (this.#calls.size > 0) return;
    this.#stopChecks?.();
    this.#stopChecks = undefined;
    this.#failures = 0;
  }

  /** The timer is not reset by each chunk: it looks how long the silence has lasted when it fires. */
  #armLimit(call: Call): void {
    const limitMs = call.hasBytes ? call.limits.nextMs : call.limits.firstMs;
    call.stopTimer();
    if (limitMs <= 0) return;
    call.stopTimer = this.#clock.after(Math.max(1, limitMs - this.#silentMs(call)), () => {
      if (this.#silentMs(call) >= limitMs) this.#giveUp(call, '');
      else this.#armLimit(call);
    });
  }

  #armCheck(): () => void {
    return this.#clock.after(checkMs, () => void this.#check());
  }

  /** Never rejects. */
  async #check(): Promise<void> {
    const silent = [...this.#calls].filter((call) => this.#silentMs(call) >= checkMs);
    if (silent.length > 0) {
      const error = await this.#findError();
      this.#failures = error === undefined ? 0 : this.#failures + 1;
      if (this.#failures >= checksToFail) {
        this.#failures = 0;
        for (const call of silent) if (this.#silentMs(call) >= checkMs) this.#giveUp(call, `, and ${error}`);
      }
    }
    this.#stopChecks = this.#calls.size > 0 ? this.#armCheck() : undefined;
  }

  async #findError(): Promise<string | undefined> {
    const timeout = new AbortController();
    const late = new Error(`GET /health was not answered within ${checkTimeoutMs / 1000} s`);
    const stop = this.#clock.after(checkTimeoutMs, () => timeout.abort(late));
    try {
      await this.#checkHealth(timeout.signal);
      return undefined;
    } catch (error) {
      return messageOf(timeout.signal.aborted ? late : error);
    } finally {
      stop();
    }
  }

  #silentMs({ lastAt }: Call): number {
    return this.#clock.monotonic() - lastAt;
  }

  #giveUp(call: Call, reason: string): void {
    const message = `nothing came for ${Math.round(this.#silentMs(call)) / 1000} s${reason}`;
    call.controller.abort(new RolloutError('backend-failed', message, { details: { reason: 'silence' } }));
  }
}
