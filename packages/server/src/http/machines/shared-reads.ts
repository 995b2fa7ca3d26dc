// Reads that are the same for all workers: those that arrive while one runs share the next one, so that a thousand workers cost what a few do,
// and none gets what was read before it asked.

import type { Store } from '@millrace/store';

const shared = ['backends', 'backendLoads', 'policy', 'workers', 'lastEventId'] as const;

export function shareReads(store: Store): Store {
  const reads = new Map<PropertyKey, () => Promise<unknown>>(shared.map((name) => [name, share<unknown>(() => store[name]())]));
  return new Proxy(store, {
    get(target, name) {
      const known = reads.get(name);
      if (known) return known;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

function share<T>(read: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  let next: Promise<T> | undefined;
  const start = () => {
    next = undefined;
    const own = read().finally(() => {
      if (running === own) running = undefined;
    });
    running = own;
    return own;
  };
  return () => {
    if (!running) return start();
    next ??= running.then(start, start);
    return next;
  };
}
