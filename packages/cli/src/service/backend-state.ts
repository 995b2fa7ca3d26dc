// A backend's state as people see it.

import type { BackendView } from '@millrace/protocol';

/** A broken backend is broken, whether or not it drains. */
export function toBackendState({ state, health }: Pick<BackendView, 'state' | 'health'>): string {
  return health === 'broken' ? 'broken' : state;
}

/** With the machines that cannot reach it, if others can. */
export function describeBackendState(backend: Pick<BackendView, 'state' | 'health' | 'broken_for'>): string {
  const { health, broken_for: machines } = backend;
  const state = toBackendState(backend);
  if (health === 'broken' || machines.length === 0) return state;
  return `${state}, not for ${machines.length > 2 ? `${machines.length} machines` : machines.join(' and ')}`;
}
