// What an agent is charged for its calls: neither the wait until a call may begin, nor the time for which the machine had no core, no disk and
// no memory for its sandbox. Short calls are not looked at: that would cost more than it is worth.

import type { Clock } from '@millrace/base/clock';
import type { Deadline, Uncharged } from '@millrace/base/deadline';
import { OwnClock, type Sandbox } from '@millrace/sandbox';

/** A call is looked at when it has taken this long, and then again and again. */
const lookMs = 1000;
/** No agent is given back more than this many times its own time. */
const stretch = 9;

export class AgentTime {
  readonly #deadline: Deadline;
  readonly #clock: Clock;
  #leftMs: number;

  constructor(deadline: Deadline, { timeoutMs, clock }: { readonly timeoutMs: number; readonly clock: Clock }) {
    this.#deadline = deadline;
    this.#clock = clock;
    this.#leftMs = stretch * timeoutMs;
  }

  /** The same sandbox, with its calls charged in this way. */
  watch(sandbox: Sandbox): Sandbox {
    const uncharged: Uncharged = (wait) => this.#deadline.uncharged(wait);
    return {
      ...sandbox,
      exec: (argv, options) => this.during(sandbox, () => sandbox.exec(argv, { ...options, uncharged })),
      runShell: (command, options) => this.during(sandbox, () => sandbox.runShell(command, { ...options, uncharged })),
      runPython: (code, options) => this.during(sandbox, () => sandbox.runPython(code, { ...options, uncharged })),
    };
  }

  /** Gives back what programs of the sandbox waited during the call. */
  async during<T>(sandbox: Pick<Sandbox, 'readUse'>, call: () => Promise<T>): Promise<T> {
    let stop = this.#clock.after(lookMs, () => {
      const own = new OwnClock({ clock: this.#clock });
      own.watch(sandbox);
      const look = (sinceMs: number, ownMs: number) => {
        stop = this.#clock.after(lookMs, () => {
          const [nowMs, usedMs] = [this.#clock.monotonic(), own.monotonic()];
          this.#giveBack(nowMs - sinceMs - (usedMs - ownMs));
          look(nowMs, usedMs);
        });
      };
      look(this.#clock.monotonic(), own.monotonic());
    });
    try {
      return await call();
    } finally {
      stop();
    }
  }

  #giveBack(waitedMs: number): void {
    const ms = Math.min(Math.max(0, waitedMs), this.#leftMs);
    this.#leftMs -= ms;
    if (ms > 0) this.#deadline.refund(ms);
  }
}
