// The sampling parameters of a turn: those of the submission, with what the scenario set for it.

import { describeIssues, RolloutError, type Sampling, type SamplingInput, sampling } from '@millrace/protocol';

/** Throws an error that names the field if the scenario sets what a submission could not. */
export function toTurnSampling(given: Sampling, own: SamplingInput | undefined, code: 'init-failed' | 'run-failed'): Sampling {
  if (own === undefined) return given;
  const parsed = sampling.safeParse({ ...given, ...own });
  if (parsed.success) return parsed.data;
  throw new RolloutError(code, `the scenario set sampling that cannot be used: ${describeIssues(parsed.error.issues)}`);
}
