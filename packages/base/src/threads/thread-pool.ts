// A few threads that run pure functions on text of unknown origin, so that no text can block the event loop. A call that uses up its CPU
// time or the thread's memory ends that thread only, and the caller gets this as a value.

import { type Clock, systemClock } from '../clock.ts';
import { Slots } from '../slots.ts';
import { PoolThread, type ThreadCall, type ThreadOutcome } from './pool-thread.ts';

interface ThreadPoolOptions {
  /** A module that calls `serveFunctions`. */
  readonly entry: URL;
  readonly name: string;
  /** The most threads; each starts when a call needs it. None keeps the process alive. */
  readonly threads: number;
  /** JavaScript objects of one thread. Buffers are not part of it. */
  readonly heapMiB: number;
  readonly clock?: Clock;
}

export class ThreadPool {
  readonly #options: ThreadPoolOptions;
  readonly #slots: Slots;
  readonly #idle: PoolThread[] = [];

  constructor(options: ThreadPoolOptions) {
    this.#options = options;
    this.#slots = new Slots(options.threads);
  }

  /**
   * Runs a function that the entry serves; it is found by its name, and its arguments and its result are cloned. Rejects with what the
   * function throws, with the signal's reason, or if no thread could be started.
   */
  async call<Args extends readonly unknown[], Value>(
    work: (...args: Args) => Value,
    args: Readonly<Args>,
    options: ThreadCall,
  ): Promise<ThreadOutcome<Awaited<Value>>> {
    using _slot = await this.#slots.acquire(options);
    const { clock = systemClock, ...rest } = this.#options;
    const thread = this.#idle.pop() ?? new PoolThread({ ...rest, clock });
    try {
      return (await thread.run(work.name, args, options)) as ThreadOutcome<Awaited<Value>>;
    } finally {
      if (!thread.hasEnded) this.#idle.push(thread);
    }
  }

  /** Ends the idle threads; a thread that runs a call ends with it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#idle.splice(0).map((thread) => thread.end()));
  }
}
