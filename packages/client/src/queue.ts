// A bounded queue between writers and one reader. A writer waits while the queue is full, and a failure reaches both sides.

export interface Queue<T> {
  push(item: T): Promise<void>;
  take(): Promise<T>;
  /** Every later push throws the error; so does take, once the items pushed before it are taken. Only the first failure counts. */
  fail(error: unknown): void;
}

export function openQueue<T>(capacity: number): Queue<T> {
  const items: T[] = [];
  let failure: { readonly error: unknown } | undefined;
  let changed = Promise.withResolvers<void>();

  function notify(): void {
    changed.resolve();
    changed = Promise.withResolvers();
  }

  return {
    async push(item) {
      while (items.length >= capacity && failure === undefined) await changed.promise;
      if (failure !== undefined) throw failure.error;
      items.push(item);
      notify();
    },
    async take() {
      for (;;) {
        const [item] = items.splice(0, 1);
        if (item !== undefined) {
          notify();
          return item;
        }
        if (failure !== undefined) throw failure.error;
        await changed.promise;
      }
    },
    fail(error) {
      failure ??= { error };
      notify();
    },
  };
}
