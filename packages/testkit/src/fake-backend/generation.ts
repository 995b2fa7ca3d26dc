// One generation of the fake backend while it runs: its tokens are due at a pace, a pause of the engine holds it, and it ends early if it
// is aborted, its caller disconnects or the engine dies.

import { setTimeout as delay } from 'node:timers/promises';
import type { WeightSpan } from './engines/wire.ts';

/** How an engine is paused: running generations are aborted, finished first, or held. */
export type PauseKind = 'abort' | 'wait' | 'keep';

/** Holds generations while the engine is paused. */
export class Gate {
  #paused: { readonly kind: PauseKind; readonly resumed: PromiseWithResolvers<void> } | undefined;

  get isPaused(): boolean {
    return this.#paused !== undefined;
  }

  pause(kind: PauseKind): void {
    this.#paused = { kind, resumed: this.#paused?.resumed ?? Promise.withResolvers<void>() };
  }

  resume(): void {
    this.#paused?.resumed.resolve();
    this.#paused = undefined;
  }

  /** New generations wait for the resume in any case, running ones only if they are kept. */
  async pass(of: 'new' | 'running', signal: AbortSignal): Promise<void> {
    while (this.#paused && (of === 'new' || this.#paused.kind === 'keep') && !signal.aborted) {
      const { promise: aborted, resolve } = Promise.withResolvers<void>();
      const onAbort = () => resolve();
      signal.addEventListener('abort', onAbort, { once: true });
      await Promise.race([this.#paused.resumed.promise, aborted]);
      signal.removeEventListener('abort', onAbort);
    }
  }
}

/** gone: the caller disconnected; dead: the engine died. */
export type EarlyEnd = 'abort' | 'gone' | 'dead';

export class FakeGeneration {
  readonly #controller = new AbortController();
  readonly #spans: WeightSpan[] = [];
  /** By which it can be aborted. */
  readonly id: string | undefined;
  isRunning = false;

  constructor(id: string | undefined) {
    this.id = id;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Undefined while nothing has ended it early. */
  get end(): EarlyEnd | undefined {
    return this.signal.aborted ? this.signal.reason : undefined;
  }

  /** Which weights sampled its tokens so far. */
  get weightVersions(): readonly WeightSpan[] {
    return this.#spans;
  }

  stop(reason: EarlyEnd): void {
    this.#controller.abort(reason);
  }

  /**
   * Samples `total` tokens, up to each of the ends at a time, and returns how many there are at last. Without a pace all come at once.
   */
  async sample(total: number, options: SampleOptions): Promise<number> {
    const { gate, tokenMs, version, onStep } = options;
    let count = 0;
    for (const end of tokenMs > 0 ? options.ends : [total]) {
      if (tokenMs > 0) await wait(tokenMs * (end - count), this.signal);
      if (gate.isPaused) await gate.pass('running', this.signal);
      if (this.signal.aborted) break;
      this.#count(version(), count, end);
      onStep(end);
      count = end;
    }
    return count;
  }

  #count(version: string, start: number, end: number): void {
    const last = this.#spans.at(-1);
    if (last?.version === version) this.#spans[this.#spans.length - 1] = { ...last, end };
    else this.#spans.push({ version, start, end });
  }
}

interface SampleOptions {
  readonly gate: Gate;
  readonly tokenMs: number;
  /** How many tokens there are after each step. */
  readonly ends: readonly number[];
  /** The version of the weights that are loaded now. */
  readonly version: () => string;
  readonly onStep: (count: number) => void;
}

/** Returns early if the signal aborts. */
export async function wait(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined); // an abort shows in the signal
}
