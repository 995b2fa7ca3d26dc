// The live view where standard output is not a terminal: one line for each interval, for log files and `tail -f`.

import type { RolloutState } from '@millrace/protocol';
import { toBackendState } from '../service/hints.ts';
import { toCount, toRate, toVisible } from '../terminal/text.ts';
import type { WatchModel } from './watch-model.ts';

const running: readonly RolloutState[] = ['init', 'ready', 'run', 'evaluate'];

export function renderWatchLine({ now, rates, ends, trouble }: WatchModel, date: Date): string {
  const time = date.toISOString().slice(0, 19);
  if (now === undefined || trouble !== undefined) return `${time}Z  ! ${toVisible(trouble ?? 'no answer yet')}`;
  const { rollouts, backends, workers } = now.status;
  const usable = backends.filter((backend) => toBackendState(backend) === 'up').length;
  const cells = [
    `queued ${toCount(rollouts.queued)}`,
    `running ${toCount(running.reduce((total, state) => total + rollouts[state], 0))}`,
    `done ${toCount(rollouts.done)}`,
    `failed ${toCount(rollouts.failed)}`,
    `${toRate(rates.ended * 60)} rollouts/min`,
    `${rates.tokens === undefined ? '-' : toRate(rates.tokens)} tokens/s`,
    `reward ${ends.meanReward === undefined ? '-' : ends.meanReward.toFixed(3)}`,
    `backends ${usable}/${backends.length}`,
    `workers ${workers.filter(({ alive }) => alive).length}`,
    ...(now.policy === undefined ? [] : [`policy ${now.policy.policy_version} ${now.policy.state}`]),
    ...now.batches.map(({ id, delivered, target }) => `batch ${id} ${toCount(delivered)}/${toCount(target)}`),
    ...now.hints.map((hint) => `! ${toVisible(hint)}`),
  ];
  return `${time}Z  ${cells.join('  ')}`;
}
