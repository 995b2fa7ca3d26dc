// `millrace batch groups` and `millrace batch watch`: a batch followed to its end, as JSON lines or as a progress line.

import { once } from 'node:events';
import { type Client, openClient } from '@millrace/client';
import { type BatchView, definedOf, toTrajectoryView } from '@millrace/protocol';
import { type Command, serviceOptions, toServiceAddress } from '../command/command.ts';
import { findBatch } from '../command/find-id.ts';
import type { Io } from '../terminal/io.ts';
import { openLiveLine } from '../terminal/live-line.ts';
import { openPaint, wantsColor } from '../terminal/text.ts';
import { renderBatch, renderBatchLine } from './batch-render.ts';

export const groups: Command = {
  name: 'batch groups',
  summary: 'Writes each delivered group as a JSON line, and waits for the next until the batch is over.',
  positional: '<id>',
  options: {
    consumer: { type: 'string', value: 'NAME', describe: 'Starts after what this consumer has acknowledged, and acknowledges each group.' },
    after: { type: 'string', value: 'N', describe: 'Starts after the group with this `seq`.' },
    trajectories: { type: 'boolean', describe: 'Adds the trajectories to each group.' },
    ...serviceOptions,
  },
  examples: [
    'millrace batch groups step-12 > groups.jsonl',
    'millrace batch groups step-12 --consumer trainer --trajectories >> groups.jsonl',
    'millrace batch groups step-12 | jq -c .rewards',
  ],
  async run(args, io) {
    const [consumer, after] = [args.text('consumer'), args.count('after', 0)];
    await using client = openClient(toServiceAddress(args, io));
    const { id } = await findBatch(client, args.positionals[0] ?? '');
    return await followGroups(client, id, {
      io,
      trajectories: args.flag('trajectories'),
      ...definedOf({ consumer, after }),
    });
  },
};

export const watch: Command = {
  name: 'batch watch',
  summary: 'Shows the progress of a batch until it is over.',
  positional: '<id>',
  options: serviceOptions,
  examples: ['millrace batch watch step-12'],
  async run(args, io) {
    await using client = openClient(toServiceAddress(args, io));
    return await watchBatch(client, await findBatch(client, args.positionals[0] ?? ''), io);
  },
};

interface FollowOptions {
  readonly io: Io;
  readonly trajectories: boolean;
  readonly consumer?: string;
  readonly after?: number;
}

/** Standard output carries only groups. Returns 0 when the batch met its target. */
export async function followGroups(client: Client, id: string, { io, trajectories, ...from }: FollowOptions): Promise<number> {
  const stop = new AbortController();
  const release = io.onInterrupt(() => stop.abort());
  try {
    for await (const delivered of client.batches.groups(id, { ...from, signal: stop.signal })) {
      for (const { rollout_id, error } of delivered.lost) io.stderr.write(`rollout ${rollout_id} is left out: ${error.message}\n`);
      const views = trajectories ? { trajectories: delivered.trajectories.map(toTrajectoryView) } : {};
      if (!io.stdout.write(`${JSON.stringify({ ...delivered.group, ...views })}\n`)) await once(io.stdout, 'drain');
    }
    const { state, groups: counts, target } = await client.batches.get(id);
    io.stderr.write(`batch ${id} is over: ${state}, ${counts.delivered} of ${target} groups\n`);
    return state === 'met' ? 0 : 1;
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    io.stderr.write(`The batch goes on. To follow it again: millrace batch groups ${id}\n`);
    return 1;
  } finally {
    release();
  }
}

const pollMs = 1000;

async function watchBatch(client: Client, found: BatchView, io: Io): Promise<number> {
  const { id } = found;
  let batch = found;
  let hints: readonly string[] = [];
  const paint = openPaint(wantsColor(io.stderr, io.env));
  const line = openLiveLine(io, {
    render: (columns) => renderBatchLine(batch, { columns, paint }),
    renderPlain: () => renderBatchLine(batch, { columns: 100, paint: openPaint(false) }),
    hints: () => hints,
  });
  const stop = new AbortController();
  const release = io.onInterrupt(() => stop.abort());
  try {
    while (batch.state === 'open' && !stop.signal.aborted) {
      await line.pause(pollMs, stop.signal);
      [batch, { hints }] = await Promise.all([client.batches.get(id), client.status()]);
      line.update();
    }
  } finally {
    release();
    line.close();
  }
  io.stdout.write(`${renderBatch(batch, openPaint(wantsColor(io.stdout, io.env))).join('\n')}\n`);
  return batch.state === 'met' ? 0 : 1;
}
