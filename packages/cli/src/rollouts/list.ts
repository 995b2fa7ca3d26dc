// `millrace ls`: rollouts as a table, the newest first.

import { openClient } from '@millrace/client';
import { definedOf, isTerminal, type RolloutView, rolloutStates } from '@millrace/protocol';
import { type Arguments, type Command, jsonOption, serviceOptions, toServiceAddress } from '../command/command.ts';
import { findBatch } from '../command/find-id.ts';
import type { Io } from '../terminal/io.ts';
import { renderTable, type TableRow, toTableOptions } from '../terminal/table.ts';
import { toDuration, toVisible } from '../terminal/text.ts';
import { filterOptions, toListFilter } from './list-filter.ts';

export const listCommand: Command = {
  name: 'ls',
  summary: 'Lists rollouts with their state, reward and failure, the newest first.',
  options: {
    state: { type: 'string', value: 'STATE', describe: `Only rollouts in this state: ${rolloutStates.join(', ')}.` },
    batch: { type: 'string', value: 'ID', describe: 'Only rollouts of this batch.' },
    group: { type: 'string', value: 'ID', describe: 'Only rollouts of this group.' },
    scenario: { type: 'string', value: 'NAME', describe: 'Only rollouts of this scenario.' },
    ...filterOptions,
    limit: { type: 'string', value: 'N', describe: 'At most this many; 20 by default.' },
    ...jsonOption,
    ...serviceOptions,
  },
  examples: [
    'millrace ls',
    'millrace ls --state failed --limit 50',
    'millrace ls --reward ..0 --blame policy --text timeout',
    'millrace ls --batch step-12 --json | jq length',
  ],
  run: runList,
};

async function runList(args: Arguments, io: Io): Promise<number> {
  const filter = definedOf({
    state: args.choice('state', rolloutStates),
    group: args.text('group'),
    scenario: args.text('scenario'),
  });
  const limit = args.count('limit', 1) ?? 20;
  const isMeant = toListFilter(args);
  await using client = openClient(toServiceAddress(args, io));
  const named = args.text('batch');
  const batch = named === undefined ? undefined : (await findBatch(client, named)).id;
  const listed = client.list({ ...filter, ...definedOf({ batch, limit: isMeant ? undefined : limit }), order: 'newest' });
  const rollouts = await takeSome(listed, { isMeant, limit });
  if (args.flag('json')) io.stdout.write(`${JSON.stringify(rollouts, undefined, 2)}\n`);
  else if (rollouts.length === 0) io.stderr.write('There is no such rollout.\n');
  else io.stdout.write(`${renderRollouts(rollouts, io).join('\n')}\n`);
  return 0;
}

interface Wanted {
  readonly isMeant: ((view: RolloutView) => boolean) | undefined;
  readonly limit: number;
}

async function takeSome(listed: AsyncIterable<RolloutView>, { isMeant = () => true, limit }: Wanted): Promise<RolloutView[]> {
  const taken: RolloutView[] = [];
  for await (const view of listed) {
    if (isMeant(view)) taken.push(view);
    if (taken.length === limit) break;
  }
  return taken;
}

function renderRollouts(rollouts: readonly RolloutView[], io: Io): string[] {
  const now = Date.now();
  const rows = rollouts.map((view): TableRow => {
    const { id, state, reward, scenario, attempt, group } = view;
    const until = view.ended_at === null ? now : Date.parse(view.ended_at);
    return {
      cells: [
        id,
        state,
        reward === null ? '-' : reward.toFixed(3),
        scenario,
        String(attempt),
        toDuration(Math.max(0, until - Date.parse(view.created_at))),
        toDuration(Math.max(0, now - Date.parse(view.created_at))),
        group ?? '-',
        toReason(view),
      ],
      colour: toColour(view),
    };
  });
  const heads = ['rollout', 'state', 'reward', 'scenario', 'attempt', 'took', 'age', 'group', 'failure'];
  return renderTable(heads, rows, toTableOptions(io, [2, 4, 5, 6]));
}

function toReason({ failure, waiting = '' }: RolloutView): string {
  if (failure === null) return toVisible(waiting);
  return `${failure.code} (${failure.blame}): ${toVisible(failure.message.split('\n')[0] ?? '')}`;
}

function toColour({ state }: RolloutView): TableRow['colour'] {
  if (state === 'failed') return 'red';
  if (state === 'cancelled') return 'yellow';
  return isTerminal(state) ? undefined : 'cyan';
}
