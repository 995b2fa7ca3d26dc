// The warm pool: a driver that starts sandboxes of another driver ahead, so that opening one is taking one that waits. No sandbox
// is given twice, one that waits is known to live when it is given, and none waits when nobody asks for its like any more.

import { type Clock, systemClock } from '../../base/clock.ts';
import { Deadline } from '../../base/deadline.ts';
import { type Log, silentLog } from '../../base/log.ts';
import type { SandboxConfig } from '../config.ts';
import { linkFolder } from '../layout.ts';
import type { OpenOptions, Sandbox, SandboxDriver, SandboxSpec } from '../sandbox.ts';
import { toKey, WarmDemand } from './warm-demand.ts';

export interface WarmPoolOptions {
  readonly config: SandboxConfig['warm'];
  readonly log?: Log;
  readonly clock?: Clock;
}

/** Disposing closes those that wait; those that were opened are their owners'. */
export interface WarmPool extends SandboxDriver, AsyncDisposable {
  /** Says that so many sandboxes of this spec will be opened soon. */
  expect(spec: SandboxSpec, count: number): void;
  /** Resolves when as many wait as should. */
  settled(): Promise<void>;
}

/** What one waiting sandbox is counted as; `bench/sandbox-density.ts` holds it against what it measures. */
export const idleMiB = 64;

const probeTimeoutMs = 2_000;
const shellTimeoutMs = 60_000;

export function openWarmPool(driver: SandboxDriver, options: WarmPoolOptions): WarmPool {
  const { sandboxes, memoryMiB } = options.config;
  const capacity = Math.min(sandboxes, Math.floor(memoryMiB / idleMiB));
  const pool = new Pool(driver, capacity, options);
  return {
    ...driver,
    open: (spec, openOptions = {}) => (capacity === 0 ? driver.open(spec, openOptions) : pool.open(spec, openOptions)),
    expect: (spec, count) => capacity > 0 && pool.expect(spec, count),
    settled: () => pool.settled(),
    [Symbol.asyncDispose]: () => pool.close(),
  };
}

interface Waiting {
  readonly key: string;
  readonly sandbox: Sandbox;
  readonly sinceMs: number;
  /** Its wall time begins. */
  readonly handOver: () => void;
}

interface Starting {
  readonly key: string;
  readonly done: Promise<Waiting | undefined>;
  /** Of somebody who waits for this one. */
  take?: ((one: Waiting | undefined) => void) | undefined;
}

class Pool {
  readonly #driver: SandboxDriver;
  readonly #capacity: number;
  readonly #maxAgeMs: number;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #demand: WarmDemand;
  readonly #closing = new AbortController();
  /** The oldest first. */
  #waiting: Waiting[] = [];
  #starting: Starting | undefined;
  /** Calls of `open` that somebody waits for: nothing is started ahead meanwhile. */
  #opening = 0;
  readonly #ending = new Set<Promise<void>>();
  #cancelTimer = () => {};
  #onSettled: (() => void)[] = [];

  constructor(driver: SandboxDriver, capacity: number, { config, log = silentLog, clock = systemClock }: WarmPoolOptions) {
    this.#driver = driver;
    this.#capacity = capacity;
    this.#maxAgeMs = config.maxAgeSeconds * 1000;
    this.#log = log;
    this.#clock = clock;
    this.#demand = new WarmDemand(capacity, this.#maxAgeMs);
  }

  async open(spec: SandboxSpec, options: OpenOptions): Promise<Sandbox> {
    options.signal?.throwIfAborted();
    const startMs = this.#clock.monotonic();
    this.#demand.record(spec, startMs);
    this.#opening += 1;
    try {
      const warm = await this.#take(toKey(spec), options.signal);
      if (!warm) return await this.#openCold(spec, options);
      warm.handOver();
      const ms = this.#clock.monotonic() - startMs;
      this.#log.info('sandbox-start', { sandboxId: warm.sandbox.id, driver: this.#driver.name, start: 'warm', ms });
      return warm.sandbox;
    } finally {
      this.#opening -= 1;
      this.#tend();
    }
  }

  expect(spec: SandboxSpec, count: number): void {
    this.#demand.record(spec, this.#clock.monotonic(), count);
    this.#tend();
  }

  settled(): Promise<void> {
    return new Promise((resolve) => {
      this.#onSettled.push(resolve);
      this.#tend();
    });
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('the warm pool is closed'));
    this.#cancelTimer();
    await this.#starting?.done;
    for (const one of this.#waiting) this.#retire(one);
    await Promise.all(this.#ending);
  }

  async #openCold(spec: SandboxSpec, options: OpenOptions): Promise<Sandbox> {
    try {
      return await this.#driver.open(spec, options);
    } catch (error) {
      if (!options.signal?.aborted) this.#demand.forget(toKey(spec));
      throw error;
    }
  }

  /** One that has just answered, or nothing. */
  async #take(key: string, signal: AbortSignal | undefined): Promise<Waiting | undefined> {
    for (;;) {
      const one = this.#waiting.find((waiting) => waiting.key === key);
      if (!one) return this.#join(key, signal);
      this.#waiting = this.#waiting.filter((waiting) => waiting !== one);
      if (await this.#answers(one.sandbox)) {
        if (!signal?.aborted) return one;
        this.#waiting.unshift(one);
        if (this.#closing.signal.aborted) this.#retire(one);
        throw signal.reason;
      }
      this.#log.warn('sandbox-warm-dead', { sandboxId: one.sandbox.id });
      this.#retire(one);
    }
  }

  /** One that is being started already is ready sooner than another. */
  #join(key: string, signal: AbortSignal | undefined): Promise<Waiting | undefined> {
    const starting = this.#starting;
    if (starting?.key !== key || starting.take) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        starting.take = undefined;
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      starting.take = (one) => {
        signal?.removeEventListener('abort', onAbort);
        resolve(one);
      };
    });
  }

  async #answers(sandbox: Sandbox): Promise<boolean> {
    using deadline = new Deadline('the probe of a waiting sandbox', probeTimeoutMs, this.#clock);
    const probe = sandbox.readFile(`${linkFolder}/limits.json`, { maxBytes: 1 << 16, signal: deadline.signal });
    return await probe.then(
      () => true,
      () => false,
    );
  }

  /** Brings those that wait nearer to what should wait, one at a time. */
  #tend(): void {
    const nowMs = this.#clock.monotonic();
    for (const one of this.#waiting.filter(({ sinceMs }) => nowMs - sinceMs >= this.#maxAgeMs)) this.#retire(one);
    this.#setTimer(nowMs);
    if (this.#starting || this.#opening > 0) return;
    const targets = this.#closing.signal.aborted ? [] : this.#demand.targets(nowMs);
    const short = targets.find(({ key, count }) => this.#count(key) < count);
    if (!short) {
      for (const resolve of this.#onSettled.splice(0)) resolve();
      return;
    }
    if (this.#waiting.length >= this.#capacity) {
      const excess = this.#waiting.find(({ key }) => this.#count(key) > (targets.find((target) => target.key === key)?.count ?? 0));
      if (excess) this.#retire(excess);
    }
    this.#start(short);
  }

  #count(key: string): number {
    return this.#waiting.filter((one) => one.key === key).length;
  }

  #start({ key, spec }: { readonly key: string; readonly spec: SandboxSpec }): void {
    const handed = Promise.withResolvers<void>();
    const done = this.#openAhead(spec, handed.promise).then(
      (sandbox) => ({ key, sandbox, sinceMs: this.#clock.monotonic(), handOver: handed.resolve }),
      (error: Error) => {
        this.#demand.forget(key); // rather than again and again
        if (!this.#closing.signal.aborted) this.#log.warn('sandbox-warm-failed', { message: error.message });
        return undefined;
      },
    );
    const starting: Starting = { key, done };
    this.#starting = starting;
    done.then((one) => {
      this.#starting = undefined;
      if (starting.take) starting.take(one);
      else if (one) this.#shelve(one);
      this.#tend();
    });
  }

  /** With its shell, which starts when the executor is ready. */
  async #openAhead(spec: SandboxSpec, handedOver: Promise<void>): Promise<Sandbox> {
    const { signal } = this.#closing;
    const sandbox = await this.#driver.open(spec, { signal, handedOver });
    try {
      await sandbox.runShell(':', { timeoutMs: shellTimeoutMs, signal });
      return sandbox;
    } catch (error) {
      await sandbox[Symbol.asyncDispose]();
      throw error;
    }
  }

  #shelve(one: Waiting): void {
    const { died } = one.sandbox;
    const onDeath = () => {
      if (!this.#waiting.includes(one)) return; // its owner hears of it
      this.#demand.forget(one.key); // what dies while nothing happens would die again
      this.#retire(one);
      this.#tend();
    };
    this.#waiting.push(one);
    died.addEventListener('abort', onDeath, { once: true });
    if (died.aborted) onDeath();
    else if (this.#closing.signal.aborted) this.#retire(one);
  }

  #retire(one: Waiting): void {
    this.#waiting = this.#waiting.filter((waiting) => waiting !== one);
    const ending = Promise.resolve(one.sandbox[Symbol.asyncDispose]())
      .catch((error) => this.#log.warn('sandbox-close-failed', { sandboxId: one.sandbox.id, error: String(error) }))
      .finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  #setTimer(nowMs: number): void {
    this.#cancelTimer();
    if (this.#waiting.length === 0 || this.#closing.signal.aborted) return;
    const oldestMs = Math.min(...this.#waiting.map(({ sinceMs }) => sinceMs));
    this.#cancelTimer = this.#clock.after(oldestMs + this.#maxAgeMs - nowMs, () => this.#tend());
  }
}
