// The signals that stop a node of a Slurm job.

/** Ends it: once to finish what runs, twice to hand it back now. */
export interface StopSignals {
  /** Aborted at the first. */
  readonly asked: AbortSignal;
  /** Aborted at the second. */
  readonly urged: AbortSignal;
}
