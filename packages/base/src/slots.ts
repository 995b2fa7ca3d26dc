// A counting semaphore, first come, first served. It bounds a stage and its buffer.

export class Slots {
  readonly count: number;
  #active = 0;
  readonly #waiters = new Set<() => void>();
  readonly #onFree: () => void;

  /** `onFree` is called when a slot is released and no caller is waiting for it. */
  constructor(count: number, onFree: () => void = () => {}) {
    this.count = count;
    this.#onFree = onFree;
  }

  get active(): number {
    return this.#active;
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  get free(): number {
    return this.count - this.#active;
  }

  /** A slot if one is free now. */
  take(): Slot | undefined {
    if (this.free <= 0 || this.#waiters.size > 0) return undefined;
    this.#active += 1;
    return new Slot(() => this.#release());
  }

  /** Waits for a slot; rejects with the signal's reason if it aborts first. */
  acquire(options: { readonly signal?: AbortSignal | undefined }): Promise<Slot> {
    const { signal } = options;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const slot = this.take();
      if (slot) return resolve(slot);
      const granted = () => {
        signal?.removeEventListener('abort', aborted);
        resolve(new Slot(() => this.#release()));
      };
      const aborted = () => {
        this.#waiters.delete(granted);
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', aborted, { once: true });
      this.#waiters.add(granted);
    });
  }

  #release(): void {
    const [next] = this.#waiters;
    if (next) {
      // The slot is handed over, so it stays active.
      this.#waiters.delete(next);
      next();
      return;
    }
    this.#active -= 1;
    this.#onFree();
  }
}

/** Held until disposed; disposing is idempotent. */
export class Slot implements Disposable {
  #release: (() => void) | undefined;

  constructor(release: () => void) {
    this.#release = release;
  }

  [Symbol.dispose](): void {
    const release = this.#release;
    this.#release = undefined;
    release?.();
  }
}
