// The current policy version: the one the trainer last set, or that of the newest backend if it is newer.

import type { Store } from '@millrace/store';

/** Absent when there is no backend. */
export async function readCurrentVersion(store: Pick<Store, 'backends' | 'policy'>): Promise<number | undefined> {
  const [backends, { policyVersion }] = await Promise.all([store.backends(), store.policy()]);
  return backends.length === 0 ? undefined : Math.max(policyVersion, ...backends.map((backend) => backend.policyVersion));
}
