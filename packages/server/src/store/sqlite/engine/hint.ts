// Hints over a file beside the database. A writer touches it after each commit that wrote an event, and every process watches
// it. The WAL file itself will not do: it changes before its commit can be seen, so the last commit of a burst goes unnoticed.

import { type FSWatcher, watch } from 'node:fs';
import { systemClock } from '../../../base/clock.ts';
import type { Log } from '../../../base/log.ts';

const pauseMs = 5;
const pollMs = 1_000;

export interface HintOptions {
  readonly path: string;
  readonly log: Log;
  /** Asked once a second, for what the watch has missed. */
  readonly lastEventId: () => Promise<number>;
}

/** Tells its listeners at once, then at most every few milliseconds. In real time: it paces what other processes do. */
export class Hints implements Disposable {
  readonly #options: HintOptions;
  readonly #listeners = new Set<() => void>();
  #watcher: FSWatcher | undefined;
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
    this.#watcher?.close();
    this.#stopPoll?.();
    this.#stopPause?.();
    this.#watcher = this.#stopPoll = this.#stopPause = undefined;
  }

  #start(): void {
    this.#stopPoll = systemClock.after(pollMs, () => void this.#poll());
    const blind = (error: unknown) => this.#options.log.warn('store-watch-failed', { path: this.#options.path, error: String(error) });
    try {
      this.#watcher = watch(`${this.#options.path}-hint`, { persistent: false }, () => this.#hint()).on('error', blind);
    } catch (error) {
      blind(error);
    }
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
    for (const listener of this.#listeners) this.#tell(listener);
  }

  #tell(listener: () => void): void {
    try {
      listener();
    } catch (error) {
      this.#options.log.error('store-hint-listener-failed', { error: String(error) });
    }
  }

  async #poll(): Promise<void> {
    const last = await this.#options.lastEventId().catch(() => this.#last); // the next poll asks again
    if (this.#stopPoll === undefined) return;
    if (last !== this.#last) this.#hint();
    this.#last = last;
    this.#stopPoll = systemClock.after(pollMs, () => void this.#poll());
  }
}
