// Starts a batch: tasks from a file or from a registered source, and the fields of the request from options.

import { randomUUID } from 'node:crypto';
import type { Client } from '@millrace/client';
import { type BatchInput, type BatchView, batchRequest } from '@millrace/protocol';
import { type Arguments, jsonOption, type Option, serviceOptions, UsageError } from '../command/command.ts';
import { locateFaults } from '../tasks/faults.ts';
import { readTasks } from '../tasks/read-tasks.ts';
import { readPairs, samplingOptions, toSamplingFields } from '../tasks/sampling-options.ts';
import type { Io } from '../terminal/io.ts';

export const startOptions = {
  scenario: { type: 'string', value: 'NAME', describe: 'The scenario of the tasks, where the lines do not name it.' },
  target: { type: 'string', value: 'N', describe: 'How many informative groups are delivered; required.' },
  siblings: { type: 'string', short: 'n', value: 'N', describe: 'How many rollouts each task gets; required.' },
  name: { type: 'string', value: 'ID', describe: 'The id of the batch; repeating it with the same content changes nothing.' },
  ...samplingOptions,
  set: { type: 'string', value: 'KEY=VALUE', multiple: true, describe: 'Any other field of the request, such as max_groups=100.' },
  follow: { type: 'boolean', describe: 'Writes each group as a JSON line when it is delivered, until the batch is over.' },
  trajectories: { type: 'boolean', describe: 'With --follow: adds the trajectories to each group.' },
  ...jsonOption,
  ...serviceOptions,
} as const satisfies Record<string, Option>;

/** The service takes this many tasks in one request. */
const tasksPerRequest = 10_000;

export async function startBatch(client: Client, args: Arguments, io: Io): Promise<BatchView> {
  const [target, siblings] = [args.count('target', 1), args.count('siblings', 1)];
  if (target === undefined || siblings === undefined) throw new UsageError('batch start needs --target N and --siblings N');
  const more = readPairs(args, 'set');
  const hasFile = args.positionals.length > 0 || !('source' in more);
  const none = { source: '', lines: [], tasks: [], scenario: args.text('scenario') };
  const { source, lines, tasks, scenario } = hasFile ? await readTasks(args, io, 'a batch') : none;
  if (scenario === undefined) throw new UsageError('batch start needs --scenario NAME');
  const first = tasks.slice(0, tasksPerRequest);
  const rest = tasks.slice(first.length);
  const id = args.text('name') ?? `b-${randomUUID().slice(0, 8)}`;
  const written = { id, scenario, target, group_size: siblings, ...toSamplingFields(args), tasks: first, ...more };
  const request = toRequest(rest.length > 0 ? { ...written, closed: false } : written);
  try {
    const created = await client.batches.create(request);
    return rest.length === 0 ? created : await appendRest(client, created.id, rest);
  } catch (error) {
    throw locateFaults(error, { source, lines });
  }
}

function toRequest(written: Record<string, unknown>): BatchInput {
  const parsed = batchRequest.safeParse(written);
  if (parsed.success) return { ...parsed.data, ...written };
  const [issue] = parsed.error.issues;
  throw new UsageError(`${issue?.path.map((part) => `${String(part)}: `).join('') ?? ''}${issue?.message}`);
}

async function appendRest(client: Client, id: string, tasks: readonly Record<string, unknown>[]): Promise<BatchView> {
  for (let from = 0; ; from += tasksPerRequest) {
    const closed = from + tasksPerRequest >= tasks.length;
    const batch = await client.batches.appendTasks(id, tasks.slice(from, from + tasksPerRequest), { closed });
    if (closed) return batch;
  }
}
