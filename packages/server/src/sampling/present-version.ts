// The present policy version: what the trainer last said, or what the newest backend serves where that is newer.

import type { Store } from '../store/store.ts';

/** Absent while there is no backend. */
export async function readPresentVersion(store: Pick<Store, 'backends' | 'policy'>): Promise<number | undefined> {
  const [backends, { policyVersion }] = await Promise.all([store.backends(), store.policy()]);
  return backends.length === 0 ? undefined : Math.max(policyVersion, ...backends.map((backend) => backend.policyVersion));
}
