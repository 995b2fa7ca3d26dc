// Admission by staleness: a batch that trains version v starts groups only while the current weights are at most `max_staleness`
// versions behind v. This bounds the work in progress, so slow tasks need not be discarded.

interface Admission {
  readonly for_version?: number | undefined;
  readonly max_staleness: number;
}

/** Always true when either version is unknown. */
export function mayBegin({ for_version, max_staleness }: Admission, current: number | undefined): boolean {
  return for_version === undefined || current === undefined || current + max_staleness >= for_version;
}

/** Whether any of these samples comes from weights that are too old to deliver. */
export function isTooOld(firstVersions: readonly number[], { max_staleness }: Admission, current: number | undefined): boolean {
  return current !== undefined && firstVersions.some((version) => current - version > max_staleness);
}
