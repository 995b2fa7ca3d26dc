// Tells listeners that the store changed. The engine notices changes in its own way; a slow poll backs it up.

import { systemClock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import { messageOf } from '@millrace/protocol';

const pauseMs = 5;
const pollMs = 1_000;

interface HintOptions {
  readonly log: Log;
  /** Calls back after changes, soon and perhaps not after each, until the returned function is called. */
  readonly watch: (onChange: () => void) => () => void;
  /** Polled once a second, in case the watch missed a change. */
  readonly lastEventId: () => Promise<number>;
}

/** Notifies listeners immediately, then at most every few milliseconds. Uses the system clock because it paces other processes. */
export class Hints implements Disposable {
  readonly #options: HintOptions;
  readonly #listeners = new Set<() => void>();
  #stopWatch: (() => void) | undefined;
  #stopPoll: (() => void) | undefined;
  #stopPause: (() => void) | undefined;
  #again = false;
  #last = -1;

  constructor(options: HintOptions) {
    this.#options = options;
  }

  subscribe(listener: () => void): () => void {
    const own = () => listener();
    this.#listeners.add(own);
    if (this.#listeners.size === 1) this.#start();
    return () => {
      if (this.#listeners.delete(own) && this.#listeners.size === 0) this[Symbol.dispose]();
    };
  }

  [Symbol.dispose](): void {
    this.#listeners.clear();
    this.#stopWatch?.();
    this.#stopPoll?.();
    this.#stopPause?.();
    this.#stopWatch = this.#stopPoll = this.#stopPause = undefined;
  }

  #start(): void {
    this.#stopPoll = systemClock.after(pollMs, () => void this.#poll());
    this.#stopWatch = this.#options.watch(() => this.#hint());
  }

  #hint(): void {
    if (this.#stopPause) {
      this.#again = true;
      return;
    }
    this.#again = false;
    this.#stopPause = systemClock.after(pauseMs, () => {
      this.#stopPause = undefined;
      if (this.#again) this.#hint();
    });
    for (const listener of this.#listeners) this.#notify(listener);
  }

  #notify(listener: () => void): void {
    try {
      listener();
    } catch (error) {
      this.#options.log.error('store-hint-listener-failed', { error: messageOf(error) });
    }
  }

  async #poll(): Promise<void> {
    const last = await this.#options.lastEventId().catch(() => this.#last); // the next poll tries again
    if (this.#stopPoll === undefined) return;
    if (last !== this.#last) this.#hint();
    this.#last = last;
    this.#stopPoll = systemClock.after(pollMs, () => void this.#poll());
  }
}
