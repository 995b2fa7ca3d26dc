// The only place that touches timers and the date, so that tests own time.

export interface Clock {
  /** Milliseconds since 1970, for records. */
  now(): number;
  /** Milliseconds that never jump, for durations. */
  monotonic(): number;
  /** Calls back once; the returned function takes it back. */
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

/** Resolves after `ms`; rejects with the signal's reason when it aborts first. */
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
