// Waiting that a signal ends at once, whether or not the work behind it listens.

/** Resolves as `work` does; rejects with the signal's reason as soon as it aborts. What `work` does later is nobody's concern. */
export function raceSignal<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const aborted = () => reject(signal.reason);
    if (signal.aborted) aborted();
    signal.addEventListener('abort', aborted, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', aborted));
  });
}
