// How a pool on one machine reads the record of a backend.

import type { BackendRecord } from '@millrace/engines';

/** A backend that this machine cannot reach is broken here. */
export function toOwnView(record: BackendRecord, machine: string | undefined): BackendRecord {
  const { health } = record;
  const own = health?.brokenFor?.find((one) => one.machine === machine);
  return health && own ? { ...record, health: { brokenAtMs: own.sinceMs, ...health } } : record;
}

export function isUp({ state, health }: BackendRecord): boolean {
  return state === 'up' && health?.brokenAtMs === undefined;
}

/** Whether calls go to the same server in the same way. */
export function isSameServer(a: BackendRecord, b: BackendRecord): boolean {
  return (
    a.url === b.url &&
    a.dialect === b.dialect &&
    a.model === b.model &&
    a.apiKey === b.apiKey &&
    a.policyVersion === b.policyVersion &&
    a.logprobsMode === b.logprobsMode &&
    a.probe?.contextTokens === b.probe?.contextTokens &&
    a.probe?.logprobsMode === b.probe?.logprobsMode
  );
}
