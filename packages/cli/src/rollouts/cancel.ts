// `millrace cancel`: stops rollouts by id, by batch, or everything that is queued.

import { type Client, openClient } from '@millrace/client';
import type { CancelOutcome } from '@millrace/protocol';
import { type Arguments, type Command, serviceOptions, toServiceAddress, UsageError } from '../command/command.ts';
import { confirm, yesOption } from '../command/confirm.ts';
import { findAll, findBatch, findRollout } from '../command/find-id.ts';
import type { Io } from '../terminal/io.ts';
import { toCount } from '../terminal/text.ts';

export const cancelCommand: Command = {
  name: 'cancel',
  summary: 'Cancels rollouts: those that are queued at once, those that run within a second. The start of an id is enough.',
  positional: '[id …]',
  options: {
    batch: { type: 'string', value: 'ID', describe: 'Cancels this batch and its rollouts; asks first.' },
    'all-queued': { type: 'boolean', describe: 'Cancels every rollout that is queued; asks first.' },
    ...yesOption,
    ...serviceOptions,
  },
  examples: ['millrace cancel r-1234 r-1235', 'millrace cancel --batch step-12 --yes', 'millrace cancel --all-queued --yes'],
  run: runCancel,
};

async function runCancel(args: Arguments, io: Io): Promise<number> {
  const batch = args.text('batch');
  const ways = [args.positionals.length > 0, batch !== undefined, args.flag('all-queued')].filter(Boolean).length;
  if (ways !== 1) throw new UsageError('give rollout ids, or --batch ID, or --all-queued');
  await using client = openClient(toServiceAddress(args, io));
  if (batch !== undefined) return await cancelBatch(client, batch, { args, io });
  if (args.flag('all-queued')) return await cancelQueued(client, { args, io });
  return await cancelNamed(client, args.positionals, io);
}

interface Asking {
  readonly args: Arguments;
  readonly io: Io;
}

async function cancelBatch(client: Client, start: string, { args, io }: Asking): Promise<number> {
  const { id, state, groups } = await findBatch(client, start);
  if (state !== 'open') {
    io.stderr.write(`batch ${id} is already over: ${state}\n`);
    return 1;
  }
  if (!(await confirm(`Cancel batch ${id} with ${toCount(groups.open)} open groups?`, args, io))) return 1;
  await client.batches.cancel(id);
  io.stdout.write(`batch ${id} is cancelled\n`);
  return 0;
}

async function cancelQueued(client: Client, { args, io }: Asking): Promise<number> {
  const ids: string[] = [];
  for await (const { id } of client.list({ state: 'queued' })) ids.push(id);
  if (ids.length === 0) {
    io.stderr.write('Nothing is queued.\n');
    return 0;
  }
  if (!(await confirm(`Cancel all ${toCount(ids.length)} queued rollouts?`, args, io))) return 1;
  const outcomes = await cancelAll(client, ids);
  io.stdout.write(`${toCount(outcomes.filter((outcome) => outcome !== 'ended').length)} rollouts are cancelled\n`);
  return 0;
}

const outcomeTexts: Readonly<Record<CancelOutcome, string>> = {
  cancelled: 'is cancelled',
  asked: 'was asked to stop',
  ended: 'had already ended',
};

/** An id that the service does not know is an error: it would remember it, and cancel a later submission. */
async function cancelNamed(client: Client, starts: readonly string[], io: Io): Promise<number> {
  const ids = (await findAll(starts, (start) => findRollout(client, start))).map(({ id }) => id);
  const outcomes = await cancelAll(client, ids);
  for (const [index, id] of ids.entries()) io.stdout.write(`${id} ${outcomeTexts[outcomes[index] ?? 'ended']}\n`);
  return 0;
}

const cancelsAtOnce = 16;

async function cancelAll(client: Client, ids: readonly string[]): Promise<CancelOutcome[]> {
  const outcomes: CancelOutcome[] = [];
  for (let from = 0; from < ids.length; from += cancelsAtOnce)
    outcomes.push(...(await Promise.all(ids.slice(from, from + cancelsAtOnce).map((id) => client.cancel(id)))));
  return outcomes;
}
