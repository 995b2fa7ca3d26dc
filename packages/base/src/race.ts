// Waiting that a signal ends immediately, even if the work itself ignores the signal.

/** Settles like `work`; rejects with the signal's reason as soon as it aborts, and then ignores how `work` settles. */
export function raceSignal<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const aborted = () => reject(signal.reason);
    if (signal.aborted) aborted();
    signal.addEventListener('abort', aborted, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', aborted));
  });
}
