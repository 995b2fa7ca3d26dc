// A backend's state as people see it.

import type { BackendView } from '@millrace/protocol';

/** A broken backend is broken, whether or not it drains. */
export function toBackendState({ state, health }: Pick<BackendView, 'state' | 'health'>): string {
  return health === 'broken' ? 'broken' : state;
}
