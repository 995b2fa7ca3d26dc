// Rollouts of a scenario whose functions run in a process that they share, as those in Python. One that was at work there when the process died, or
// whose judging did not end, has a process for itself next time: what ends that one is its agent's doing, and no neighbour's.

import { type Failure, RolloutError } from '@millrace/protocol';
import { isDuringOwnCall, type Scenario } from '@millrace/scenarios';
import type { ClaimedRollout } from '@millrace/store';
import type { AttemptRecord } from './attempt-record.ts';

/** A rollout that only knew a process that died is apart after as many deaths. After as many deaths apart, a kill from outside is its doing, too. */
const mostDeaths = 2;

type Failed = Pick<ClaimedRollout, 'failures'>;

const isDeath = ({ code, stage }: Failure): boolean => code === 'scenario-died' && (stage === 'run' || stage === 'evaluate');
const deathsOf = ({ failures }: Failed): readonly Failure[] => failures.filter(isDeath);
/** After how many deaths the next attempt was apart. */
const shared = (deaths: readonly Failure[]): number => 1 + deaths.findIndex((one, at) => isDuringOwnCall(one) || at === mostDeaths - 1);

/** Whether the attempt has the process of its scenario for itself. */
export function isApart({ claimed }: Pick<AttemptRecord, 'claimed'>): boolean {
  return shared(deathsOf(claimed)) > 0;
}

/** The scenario in the process that this attempt uses; it ends with the attempt. */
export function chooseProcess(scenario: Scenario, record: AttemptRecord): Scenario {
  const deaths = deathsOf(record.claimed);
  const own = isApart(record) ? scenario.apart?.({ isLast: deaths.length - shared(deaths) >= mostDeaths }) : undefined;
  if (own === undefined) return scenario;
  record.closers.push(async () => own[Symbol.dispose]());
  return own;
}

/** A verdict that did not come in time where others may have kept the process busy shows nothing about the agent. */
export function toSharedDelay({ message }: RolloutError): RolloutError {
  return new RolloutError('scenario-died', `${message}, in a process that other rollouts share; the next attempt has one for itself`);
}

/** It is tried again whatever `max_retries` says: otherwise an agent could have no reward in place of a low one, for itself and its neighbours. */
export function isTriedApart(claimed: Failed, failure: Failure): boolean {
  return isDeath(failure) && deathsOf(claimed).length < 2 * mostDeaths;
}
