// `millrace cancel`: stops rollouts by id, by batch, or everything that is queued.

import { type Client, openClient } from '@millrace/client';
import { type CancelOutcome, isTerminal, tryJson } from '@millrace/protocol';
import { type Arguments, type Command, serviceOptions, toServiceAddress, UsageError } from '../command/command.ts';
import { confirm, yesOption } from '../command/confirm.ts';
import { findAll, findBatch, findRollout, ignoreNotFound } from '../command/find-id.ts';
import { readInput } from '../tasks/read-input.ts';
import type { Io } from '../terminal/io.ts';
import { toCount } from '../terminal/text.ts';
import { callInPieces } from './call-in-pieces.ts';

export const cancelCommand: Command = {
  name: 'cancel',
  summary:
    'Cancels rollouts, a batch, or everything that is queued: what is queued at once, what runs within a second. The start of an id is enough.',
  positional: '[id …]',
  options: {
    batch: { type: 'string', value: 'ID', describe: 'Cancels this batch and its rollouts; asks first.' },
    file: { type: 'string', value: 'FILE', describe: 'Cancels the rollouts of a file that `submit` wrote; asks first.' },
    'all-queued': { type: 'boolean', describe: 'Cancels every rollout that is queued; asks first.' },
    ...yesOption,
    ...serviceOptions,
  },
  examples: [
    'millrace cancel r-1234 r-1235',
    'millrace cancel --batch step-12 --yes',
    'millrace cancel --file millrace-resume-20260131090000-7.jsonl',
    'millrace cancel --all-queued --yes',
  ],
  run: runCancel,
};

async function runCancel(args: Arguments, io: Io): Promise<number> {
  const batch = args.text('batch');
  const file = args.text('file');
  const ways = [args.positionals.length > 0, batch !== undefined, file !== undefined, args.flag('all-queued')].filter(Boolean).length;
  if (ways !== 1) throw new UsageError('give rollout ids, or --batch ID, or --file FILE, or --all-queued');
  await using client = openClient(toServiceAddress(args, io));
  if (batch !== undefined) return await cancelBatch(client, batch, { args, io });
  if (file !== undefined) return await cancelFile(client, file, { args, io });
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

/** Those of the file that the service does not have were never submitted. */
async function cancelFile(client: Client, file: string, { args, io }: Asking): Promise<number> {
  const views = await callInPieces(await readIds(file, io), (id) => client.get(id).catch(ignoreNotFound));
  const ids = views.flatMap((view) => (view === undefined || isTerminal(view.state) ? [] : [view.id]));
  const missing = views.filter((view) => view === undefined).length;
  const rest = `${toCount(views.length - ids.length - missing)} had already ended, ${toCount(missing)} were never submitted`;
  if (ids.length > 0 && !(await confirm(`Cancel ${toCount(ids.length)} rollouts of ${file}?`, args, io))) return 1;
  const outcomes = await cancelAll(client, ids);
  io.stdout.write(`${toCount(outcomes.filter((outcome) => outcome !== 'ended').length)} rollouts are cancelled; ${rest}\n`);
  return 0;
}

async function readIds(file: string, io: Io): Promise<string[]> {
  const { content, source } = await readInput(file, io);
  const lines = content.split('\n').filter((line) => line.trim() !== '');
  return lines.map((line, index) => {
    const value = tryJson(line);
    const id = typeof value === 'object' && value !== null && 'id' in value ? value.id : undefined;
    if (typeof id !== 'string') throw new UsageError(`${source}:${index + 1}: there is no id; submit writes one in each line`);
    return id;
  });
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

async function cancelAll(client: Client, ids: readonly string[]): Promise<CancelOutcome[]> {
  return await callInPieces(ids, (id) => client.cancel(id));
}
