// The present policy version: what the newest backend serves.

import type { Store } from '../store/store.ts';

/** Absent while there is no backend. */
export async function readPresentVersion(store: Pick<Store, 'backends'>): Promise<number | undefined> {
  const versions = (await store.backends()).map(({ policyVersion }) => policyVersion);
  return versions.length === 0 ? undefined : Math.max(...versions);
}
