// The live view where standard output is not a terminal: one line for each interval, for log files and `tail -f`.

import type { RolloutState } from '@millrace/protocol';
import { toBackendState } from '../service/backend-state.ts';
import { toProgressText } from '../service/call-progress.ts';
import { toCount, toRate, toVisible } from '../terminal/text.ts';
import { toTokensPerSecond, type WatchModel } from './watch-model.ts';

const running: readonly RolloutState[] = ['init', 'ready', 'run', 'evaluate'];

export function renderWatchLine({ status, ends, trouble }: WatchModel, date: Date): string {
  const time = date.toISOString().slice(0, 19);
  if (status === undefined || trouble !== undefined) return `${time}Z  ! ${toVisible(trouble ?? 'no answer yet')}`;
  const { rollouts, backends, workers, policy, recent } = status;
  const usable = backends.filter((backend) => toBackendState(backend) === 'up').length;
  const tokens = toTokensPerSecond(status);
  const cells = [
    `queued ${toCount(rollouts.queued)}`,
    `running ${toCount(running.reduce((total, state) => total + rollouts[state], 0))}`,
    `done ${toCount(rollouts.done)}`,
    `failed ${toCount(rollouts.failed)}`,
    `${toRate((60 * recent.ended) / recent.seconds)} rollouts/min`,
    `${tokens === undefined ? '-' : toRate(tokens)} tokens/s`,
    ...toProgressText(backends).slice(1),
    `reward ${ends.meanReward === undefined ? '-' : ends.meanReward.toFixed(3)}`,
    `backends ${usable}/${backends.length}`,
    `workers ${workers.filter(({ alive }) => alive).length}`,
    `policy ${policy.policy_version} ${policy.state}`,
    ...status.batches.map(({ id, delivered, target }) => `batch ${id} ${toCount(delivered)}/${toCount(target)}`),
    ...status.hints.map((hint) => `! ${toVisible(hint)}`),
  ];
  return `${time}Z  ${cells.join('  ')}`;
}
