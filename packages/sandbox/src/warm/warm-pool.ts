// The warm pool: a driver that starts sandboxes of another driver ahead of use, so that opening one only takes a ready one. It never hands
// out a sandbox twice, checks that it is alive before it hands it out, and keeps none ready whose kind is no longer requested.

import { type Clock, systemClock } from '@millrace/base/clock';
import { Deadline } from '@millrace/base/deadline';
import type { Log } from '@millrace/base/log';
import type { SandboxConfig } from '../config.ts';
import { linkFolder } from '../layout.ts';
import type { OpenOptions, Sandbox, SandboxDriver, SandboxSpec } from '../sandbox.ts';
import { toKey, WarmDemand } from './warm-demand.ts';

interface WarmPoolOptions {
  readonly config: SandboxConfig['warm'];
  readonly log: Log;
  readonly clock?: Clock;
}

/** Disposing closes the ready sandboxes. Those that were handed out belong to their callers. */
export interface WarmPool extends SandboxDriver, AsyncDisposable {
  /** Announces that this many sandboxes of this spec will be opened soon. */
  expect(spec: SandboxSpec, count: number): void;
  /** Resolves when as many sandboxes are ready as should be. */
  settled(): Promise<void>;
}

/** The memory that one ready sandbox counts as; `bench/sandbox/sandbox-density.ts` compares it with the measured figure. */
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

interface WarmSandbox {
  readonly key: string;
  readonly sandbox: Sandbox;
  readonly sinceMs: number;
  /** Starts its wall time. */
  readonly handOver: () => void;
}

interface StartingSandbox {
  readonly key: string;
  readonly done: Promise<WarmSandbox | undefined>;
  /** Hands it to a caller of `open` that waits for it. */
  take?: ((one: WarmSandbox | undefined) => void) | undefined;
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
  #ready: WarmSandbox[] = [];
  #starting: StartingSandbox | undefined;
  /** Pending calls of `open`. Nothing is started ahead while there are any. */
  #opening = 0;
  readonly #ending = new Set<Promise<void>>();
  #cancelTimer = () => {};
  #onSettled: (() => void)[] = [];

  constructor(driver: SandboxDriver, capacity: number, { config, log, clock = systemClock }: WarmPoolOptions) {
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
      this.#adjust();
    }
  }

  expect(spec: SandboxSpec, count: number): void {
    this.#demand.record(spec, this.#clock.monotonic(), count);
    this.#adjust();
  }

  settled(): Promise<void> {
    return new Promise((resolve) => {
      this.#onSettled.push(resolve);
      this.#adjust();
    });
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('the warm pool is closed'));
    this.#cancelTimer();
    await this.#starting?.done;
    for (const one of this.#ready) this.#retire(one);
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

  /** A sandbox that has just replied to a probe, or undefined. */
  async #take(key: string, signal: AbortSignal | undefined): Promise<WarmSandbox | undefined> {
    for (;;) {
      const one = this.#ready.find((ready) => ready.key === key);
      if (!one) return this.#join(key, signal);
      this.#ready = this.#ready.filter((ready) => ready !== one);
      if (await this.#isAlive(one.sandbox)) {
        if (!signal?.aborted) return one;
        this.#ready.unshift(one);
        if (this.#closing.signal.aborted) this.#retire(one);
        throw signal.reason;
      }
      this.#log.warn('sandbox-warm-dead', { sandboxId: one.sandbox.id });
      this.#retire(one);
    }
  }

  /** Waits for a sandbox that is already being started: it is ready sooner than a new one. */
  #join(key: string, signal: AbortSignal | undefined): Promise<WarmSandbox | undefined> {
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

  async #isAlive(sandbox: Sandbox): Promise<boolean> {
    using deadline = new Deadline('the probe of a ready sandbox', probeTimeoutMs, this.#clock);
    const probe = sandbox.readFile(`${linkFolder}/limits.json`, { maxBytes: 1 << 16, signal: deadline.signal });
    return await probe.then(
      () => true,
      () => false,
    );
  }

  /** Brings the ready sandboxes closer to the targets, one at a time. */
  #adjust(): void {
    const nowMs = this.#clock.monotonic();
    for (const one of this.#ready.filter(({ sinceMs }) => nowMs - sinceMs >= this.#maxAgeMs)) this.#retire(one);
    this.#setTimer(nowMs);
    if (this.#starting || this.#opening > 0) return;
    const targets = this.#closing.signal.aborted ? [] : this.#demand.targets(nowMs);
    const short = targets.find(({ key, count }) => this.#count(key) < count);
    if (!short) {
      for (const resolve of this.#onSettled.splice(0)) resolve();
      return;
    }
    if (this.#ready.length >= this.#capacity) {
      const excess = this.#ready.find(({ key }) => this.#count(key) > (targets.find((target) => target.key === key)?.count ?? 0));
      if (excess) this.#retire(excess);
    }
    this.#start(short);
  }

  #count(key: string): number {
    return this.#ready.filter((one) => one.key === key).length;
  }

  #start({ key, spec }: { readonly key: string; readonly spec: SandboxSpec }): void {
    const handed = Promise.withResolvers<void>();
    const done = this.#openAhead(spec, handed.promise).then(
      (sandbox) => ({ key, sandbox, sinceMs: this.#clock.monotonic(), handOver: handed.resolve }),
      (error: Error) => {
        this.#demand.forget(key); // do not retry until it is requested again
        if (!this.#closing.signal.aborted) this.#log.warn('sandbox-warm-failed', { message: error.message });
        return undefined;
      },
    );
    const starting: StartingSandbox = { key, done };
    this.#starting = starting;
    done.then((one) => {
      this.#starting = undefined;
      if (starting.take) starting.take(one);
      else if (one) this.#keep(one);
      this.#adjust();
    });
  }

  /** Waits for its shell too, which starts after the executor is ready. */
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

  #keep(one: WarmSandbox): void {
    const { died } = one.sandbox;
    const onDeath = () => {
      if (!this.#ready.includes(one)) return; // its owner sees the signal
      this.#demand.forget(one.key); // a sandbox that dies while idle would die again
      this.#retire(one);
      this.#adjust();
    };
    this.#ready.push(one);
    died.addEventListener('abort', onDeath, { once: true });
    if (died.aborted) onDeath();
    else if (this.#closing.signal.aborted) this.#retire(one);
  }

  #retire(one: WarmSandbox): void {
    this.#ready = this.#ready.filter((ready) => ready !== one);
    const ending = Promise.resolve(one.sandbox[Symbol.asyncDispose]())
      .catch((error) => this.#log.warn('sandbox-close-failed', { sandboxId: one.sandbox.id, error: String(error) }))
      .finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  #setTimer(nowMs: number): void {
    this.#cancelTimer();
    if (this.#ready.length === 0 || this.#closing.signal.aborted) return;
    const oldestMs = Math.min(...this.#ready.map(({ sinceMs }) => sinceMs));
    this.#cancelTimer = this.#clock.after(oldestMs + this.#maxAgeMs - nowMs, () => this.#adjust());
  }
}
