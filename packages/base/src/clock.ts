// The only place that touches timers and the date, so that tests control time.

export interface Clock {
  /** Milliseconds since 1970, for timestamps. */
  now(): number;
  /** Milliseconds that never jump, for durations. */
  monotonic(): number;
  /** Calls back once; the returned function cancels the timer. */
  after(ms: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};

/** Its timers do not keep the process alive. */
export const backgroundClock: Clock = {
  ...systemClock,
  after(ms, callback) {
    const timer = setTimeout(callback, ms).unref();
    return () => clearTimeout(timer);
  },
};

/** Resolves after `ms`; rejects with the signal's reason if it aborts first. */
export function sleep(ms: number, options: { readonly clock?: Clock; readonly signal?: AbortSignal } = {}): Promise<void> {
  const { clock = systemClock, signal } = options;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => {
      stop();
      reject(signal?.reason);
    };
    const stop = clock.after(ms, () => {
      signal?.removeEventListener('abort', abort);
      resolve();
    });
    signal?.addEventListener('abort', abort, { once: true });
  });
}

export interface PauseRules {
  readonly leastMs: number;
  readonly mostMs: number;
  /** The most of its time that the caller spends in the call; a tenth unless set. */
  readonly share?: number;
}

/**
 * The pause after a call that is repeated again and again: longer after a call that took long, so that a store that is slow under the load
 * of many processes gets fewer and larger calls instead of more.
 */
export function pauseAfter(tookMs: number, { leastMs, mostMs, share = 0.1 }: PauseRules): number {
  return Math.min(mostMs, Math.max(leastMs, tookMs / share));
}
