// Collecting what will be judged out of the agent's sandbox, before it is closed.

import { definedOf } from '@millrace/protocol';
import { raceSignal } from '../../base/race.ts';
import { collectScenario, evaluateTimeoutOf } from '../../scenario/hooks.ts';
import type { AttemptRecord, Prepared } from './attempt-record.ts';
import { OwnTime } from './own-time.ts';
import type { StageDeps } from './stages.ts';

/** Runs even if the agent's time is up, on the verifier's clock. A kill of its programs may be the agent's doing, and is not tried again. */
export async function collectAttempt(
  deps: StageDeps,
  record: AttemptRecord,
  prepared: Prepared & { signal: AbortSignal },
): Promise<Buffer> {
  const { scenario, task, sandbox, signal, opening } = prepared;
  const { limits } = record.claimed.submission;
  const { stop: end } = record;
  if (!sandbox || !end || !scenario.collect) return Buffer.alloc(0);
  const timeoutMs = 1000 * (await evaluateTimeoutOf(scenario, task, limits.evaluate_timeout_s));
  const options = { what: 'collecting the results', timeoutMs, clock: deps.clock, isLastTry: true };
  using time = new OwnTime({ ...options, signal: AbortSignal.any([signal, sandbox.died]) });
  const context = { task, limits, signal: time.signal, sandbox: time.watch(sandbox), end, ...definedOf({ state: opening.state }) };
  return await raceSignal(collectScenario(scenario, context), time.signal);
}
