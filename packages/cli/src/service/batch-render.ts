// A batch as text: one row of a table, one progress line, or a page.

import { type BatchView, groupStates } from '@millrace/protocol';
import { cut, type Paint, progressBar, toCount, toDuration, width } from '../terminal/text.ts';

const barColumns = 16;

export function toBatchCells(batch: BatchView): string[] {
  const { id, state, groups, target, informative_share, mean_reward, scenario, series } = batch;
  return [
    id,
    state,
    `${toCount(groups.delivered)}/${toCount(target)}`,
    progressBar(groups.delivered / target, barColumns),
    toReward(mean_reward),
    toShare(informative_share),
    toCount(groups.open),
    scenario,
    series ?? '-',
  ];
}

export function renderBatchLine(batch: BatchView, { columns, paint }: { readonly columns: number; readonly paint: Paint }): string {
  const { groups, target, informative_share, mean_reward } = batch;
  const facts = [
    `${toCount(groups.delivered)}/${toCount(target)} groups`,
    `reward ${toReward(mean_reward)}`,
    `${toShare(informative_share)} informative`,
    `${toCount(groups.open)} open`,
  ].join('  ');
  const room = columns - width(facts) - 4;
  if (room < 10) return cut(facts, columns - 1);
  return `▕${paint('green', progressBar(groups.delivered / target, Math.min(40, room)))}▏ ${facts}`;
}

export function renderBatch(batch: BatchView, paint: Paint): string[] {
  const { groups, target, tasks, wasted, carried, ended_at, created_at } = batch;
  const until = ended_at === null ? Date.now() : Date.parse(ended_at);
  const colour = batch.state === 'met' ? 'green' : batch.state === 'open' ? 'cyan' : 'yellow';
  const counts = groupStates.filter((state) => groups[state] > 0).map((state) => `${toCount(groups[state])} ${state}`);
  const lost = Object.entries(wasted).filter(([, one]) => one.rollouts > 0);
  return [
    paint('bold', `batch ${batch.id}`),
    `  state        ${paint(colour, batch.state)} after ${toDuration(Math.max(0, until - Date.parse(created_at)))}`,
    `  progress     ${progressBar(groups.delivered / target, 24)} ${toCount(groups.delivered)} of ${toCount(target)} groups`,
    `  groups       ${counts.join(', ') || 'none yet'}${carried > 0 ? ` (${toCount(carried)} from an earlier batch)` : ''}`,
    `  reward       ${toReward(batch.mean_reward)} on average over the groups judged`,
    `  informative  ${toShare(batch.informative_share)} of the groups judged`,
    `  scenario     ${batch.scenario}, ${toCount(batch.group_size)} siblings${batch.series === null ? '' : `, series ${batch.series}`}`,
    `  tasks        ${toCount(tasks.begun)} begun, ${toCount(tasks.given)} given${tasks.closed ? '' : ', more may come'}`,
    ...lost.map(
      ([reason, one]) => `  ${reason.padEnd(13)}${toCount(one.rollouts)} rollouts, ${toCount(one.tokens)} tokens sampled and not delivered`,
    ),
  ];
}

function toReward(mean: number | null): string {
  return mean === null ? '-' : mean.toFixed(3);
}

function toShare(share: number | null): string {
  return share === null ? '-' : `${Math.round(share * 100)}%`;
}
