// `millrace batch`: batches of groups for one training step, started from a task file, listed, shown, resumed and cancelled.

import { openClient } from '@millrace/client';
import { type BatchView, batchStates } from '@millrace/protocol';
import { type Command, type CommandGroup, jsonOption, serviceOptions, toServiceAddress } from '../command/command.ts';
import { confirm, yesOption } from '../command/confirm.ts';
import { findAll, findBatch } from '../command/find-id.ts';
import { renderTable, toTableOptions } from '../terminal/table.ts';
import { openPaint, wantsColor } from '../terminal/text.ts';
import { followGroups, groups, watch } from './batch-follow.ts';
import { renderBatch, toBatchCells } from './batch-render.ts';
import { startBatch, startOptions } from './batch-start.ts';

const start: Command = {
  name: 'batch start',
  summary: 'Starts a batch from a file of tasks, one JSON object in each line, and prints its id.',
  positional: '[tasks.jsonl|-]',
  options: startOptions,
  examples: [
    'millrace batch start tasks.jsonl --scenario math --target 32 --siblings 8',
    'millrace batch start tasks.jsonl --scenario shell --target 64 --siblings 16 --follow > groups.jsonl',
    'millrace batch start --scenario math --target 32 --siblings 8 --set \'source={"file":"train"}\' --set series=run-1',
  ],
  async run(args, io) {
    await using client = openClient(toServiceAddress(args, io));
    const batch = await startBatch(client, args, io);
    if (args.flag('follow')) return followGroups(client, batch.id, { io, trajectories: args.flag('trajectories') });
    io.stdout.write(args.flag('json') ? `${JSON.stringify(batch)}\n` : `${batch.id}\n`);
    if (io.stderr.isTTY === true) io.stderr.write(`To follow it: millrace batch watch ${batch.id}\n`);
    return 0;
  },
};

const list: Command = {
  name: 'batch ls',
  summary: 'Lists batches, the newest first.',
  options: {
    state: { type: 'string', value: 'STATE', describe: `Only batches in this state: ${batchStates.join(', ')}.` },
    series: { type: 'string', value: 'NAME', describe: 'Only batches of this series.' },
    limit: { type: 'string', value: 'N', describe: 'At most this many; 20 by default.' },
    ...jsonOption,
    ...serviceOptions,
  },
  examples: ['millrace batch ls', 'millrace batch ls --state open --json'],
  async run(args, io) {
    const [state, series, limit] = [args.choice('state', batchStates), args.text('series'), args.count('limit', 1) ?? 20];
    await using client = openClient(toServiceAddress(args, io));
    const found: BatchView[] = [];
    const filter = { ...(state === undefined ? {} : { state }), ...(series === undefined ? {} : { series }) };
    for await (const batch of client.batches.list(filter)) found.push(batch);
    const shown = found.slice(-limit).reverse();
    if (args.flag('json')) io.stdout.write(`${JSON.stringify(shown, undefined, 2)}\n`);
    else if (shown.length === 0) io.stderr.write('There is no such batch. Start one: millrace batch start --help\n');
    else {
      const rows = shown.map((batch) => ({ cells: toBatchCells(batch), colour: batch.state === 'open' ? undefined : ('dim' as const) }));
      const heads = ['batch', 'state', 'groups', 'progress', 'reward', 'informative', 'open', 'scenario', 'series'];
      io.stdout.write(`${renderTable(heads, rows, toTableOptions(io, [2, 4, 5, 6])).join('\n')}\n`);
    }
    return 0;
  },
};

const show: Command = {
  name: 'batch show',
  summary: 'Shows one batch: its progress, its groups by state, and what was sampled in vain. The start of an id is enough.',
  positional: '<id>',
  options: { ...jsonOption, ...serviceOptions },
  examples: ['millrace batch show step-12', 'millrace batch show step-12 --json'],
  async run(args, io) {
    await using client = openClient(toServiceAddress(args, io));
    const batch = await findBatch(client, args.positionals[0] ?? '');
    const text = args.flag('json') ? JSON.stringify(batch) : renderBatch(batch, openPaint(wantsColor(io.stdout, io.env))).join('\n');
    io.stdout.write(`${text}\n`);
    return 0;
  },
};

const resume: Command = {
  name: 'batch resume',
  summary: 'Resumes paused batches at once, instead of waiting until a group succeeds.',
  positional: '<id …>',
  options: serviceOptions,
  examples: ['millrace batch resume step-12'],
  async run(args, io) {
    await using client = openClient(toServiceAddress(args, io));
    for (const { id } of await findAll(args.positionals, (start) => findBatch(client, start))) {
      const { state, groups: counts, target } = await client.batches.resume(id);
      io.stdout.write(`${id} is ${state}; ${counts.delivered} of ${target} groups were delivered\n`);
    }
    return 0;
  },
};

const cancel: Command = {
  name: 'batch cancel',
  summary: 'Cancels batches. Groups that were delivered stay readable.',
  positional: '<id …>',
  options: { ...yesOption, ...serviceOptions },
  examples: ['millrace batch cancel step-12 --yes'],
  async run(args, io) {
    await using client = openClient(toServiceAddress(args, io));
    const ids = (await findAll(args.positionals, (start) => findBatch(client, start))).map(({ id }) => id);
    if (!(await confirm(`Cancel ${ids.length === 1 ? `batch ${ids[0]}` : `${ids.length} batches`} and their rollouts?`, args, io)))
      return 1;
    for (const id of ids) {
      const { state, groups: counts } = await client.batches.cancel(id);
      io.stdout.write(`${id} is ${state === 'cancelled' ? 'cancelled' : `over: ${state}`}; ${counts.delivered} groups were delivered\n`);
    }
    return 0;
  },
};

export const batchCommands: CommandGroup = {
  name: 'batch',
  summary: 'Starts, lists, follows, resumes and cancels batches of groups.',
  actions: { start, ls: list, show, watch, groups, resume, cancel },
  usual: 'ls',
};
