// Admission by staleness: a batch that trains version v begins groups only while the present weights are at most `max_staleness`
// behind v, so what is accepted and running never exceeds (bound + step) batches, and slow tasks need not be thrown away.

export interface Admission {
  readonly for_version?: number | undefined;
  readonly max_staleness: number;
}

/** Without a known version nothing is held back. */
export function mayBegin({ for_version, max_staleness }: Admission, present: number | undefined): boolean {
  return for_version === undefined || present === undefined || present + max_staleness >= for_version;
}

/** Whether any of these samples is from weights too old to be delivered beside the present ones. */
export function isTooOld(firstVersions: readonly number[], { max_staleness }: Admission, present: number | undefined): boolean {
  return present !== undefined && firstVersions.some((version) => present - version > max_staleness);
}
