// Lets only a few calls into sandboxes begin at a time. When hundreds of sandboxes compute at once, they take turns in slices of
// milliseconds, each time with cold caches: every call then costs several times its usual CPU time. Calls wait in the worker instead, where
// waiting costs nothing.

import { availableParallelism } from 'node:os';
import { type Clock, systemClock } from '@millrace/base/clock';
import type { Uncharged } from '@millrace/base/deadline';
import { Slots } from '@millrace/base/slots';

const callsPerCore = 2;
/** An ordinary call ends sooner. A longer one mostly waits, for its own programs or for the network, and must not keep others waiting. */
const heldMs = 50;

interface GatedCall {
  readonly signal?: AbortSignal;
  /** The wait is not charged to the caller. */
  readonly uncharged?: Uncharged;
}

export class CallGate {
  readonly #slots: Slots;
  readonly #clock: Clock;

  constructor(count = callsPerCore * availableParallelism(), clock: Clock = systemClock) {
    this.#slots = new Slots(count);
    this.#clock = clock;
  }

  /** Waits for a place, and gives it back when the call ends or has taken long. Rejects with the signal's reason if it aborts first. */
  async run<T>(call: () => Promise<T>, { signal, uncharged = (wait) => wait() }: GatedCall): Promise<T> {
    using slot = this.#slots.take() ?? (await uncharged(() => this.#slots.acquire({ signal })));
    const cancel = this.#clock.after(heldMs, () => slot[Symbol.dispose]());
    try {
      return await call();
    } finally {
      cancel();
    }
  }
}
