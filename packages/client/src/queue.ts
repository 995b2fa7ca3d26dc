// A bounded queue between writers and one reader: a writer waits while it is full, and a failure reaches both sides.

export interface Queue<T> {
  push(item: T): Promise<void>;
  take(): Promise<T>;
  /** Every later push throws it; so does take, once what was pushed before is taken. The first failure stays. */
  fail(error: unknown): void;
}

export function openQueue<T>(capacity: number): Queue<T> {
  const items: T[] = [];
  let failure: { readonly error: unknown } | undefined;
  let wake = () => {};
  let changed = new Promise<void>((resolve) => {
    wake = resolve;
  });

  function change(): void {
    wake();
    changed = new Promise((resolve) => {
      wake = resolve;
    });
  }

  return {
    async push(item) {
      while (items.length >= capacity && failure === undefined) await changed;
      if (failure !== undefined) throw failure.error;
      items.push(item);
      change();
    },
    async take() {
      for (;;) {
        const [item] = items.splice(0, 1);
        if (item !== undefined) {
          change();
          return item;
        }
        if (failure !== undefined) throw failure.error;
        await changed;
      }
    },
    fail(error) {
      failure ??= { error };
      change();
    },
  };
}
