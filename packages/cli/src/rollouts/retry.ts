// `millrace retry`: submits the tasks of rollouts that ended without a reward again, by id or all that failed.

import { type Client, openClient } from '@millrace/client';
import { isTerminal, type RolloutView, type SubmissionInput } from '@millrace/protocol';
import { type Arguments, type Command, serviceOptions, toServiceAddress, UsageError } from '../command/command.ts';
import { confirm, yesOption } from '../command/confirm.ts';
import { findAll, findRollout, ignoreNotFound } from '../command/find-id.ts';
import type { Io } from '../terminal/io.ts';
import { toCount } from '../terminal/text.ts';
import { callInPieces } from './call-in-pieces.ts';

export const retryCommand: Command = {
  name: 'retry',
  summary:
    'Submits the tasks of rollouts that ended without a reward again. The new rollout has the id of the old one with a number: r-1234.1.',
  positional: '[id …]',
  options: {
    'all-failed': { type: 'boolean', describe: 'Retries every rollout that failed, unless it was retried with success; asks first.' },
    ...yesOption,
    ...serviceOptions,
  },
  examples: ['millrace retry r-1234 r-1235', 'millrace retry --all-failed --yes'],
  run: runRetry,
};

async function runRetry(args: Arguments, io: Io): Promise<number> {
  if (args.positionals.length > 0 === args.flag('all-failed')) throw new UsageError('give rollout ids, or --all-failed');
  await using client = openClient(toServiceAddress(args, io));
  const ids = args.flag('all-failed') ? await listFailed(client) : await findAll(args.positionals, (start) => findRollout(client, start));
  if (ids.length === 0) {
    io.stderr.write('No rollout has failed.\n');
    return 0;
  }
  if (args.flag('all-failed') && !(await confirm(`Retry ${toCount(ids.length)} rollouts that failed?`, args, io))) return 1;
  const retried = await callInPieces(ids, ({ id }) => client.retry(id));
  for (const [index, { id }] of ids.entries()) {
    const { id: retry = '', reward = null } = retried[index] ?? {};
    io.stdout.write(reward === null ? `${id} is retried as ${retry}\n` : `${id} was retried as ${retry}, which has a reward\n`);
  }
  return 0;
}

/** A retry that failed too is retried through the first of its ids. */
async function listFailed(client: Client): Promise<RolloutView[]> {
  const failed = await Array.fromAsync(client.list({ state: 'failed' }));
  const known = new Set<string>(failed.map(({ id }) => id));
  return failed.filter(({ id, reward }) => reward === null && !known.has(withoutNumber(id)));
}

function withoutNumber(id: string): string {
  return id.replace(/\.\d+$/, '');
}

/** The submissions, those whose rollouts ended without a reward under the ids of their retries. */
export async function retryUnscored<T extends SubmissionInput & { readonly id: string }>(
  client: Client,
  submissions: readonly T[],
): Promise<T[]> {
  return await callInPieces(submissions, async (one) => {
    const view = await client.get(one.id).catch(ignoreNotFound);
    if (view === undefined || !isTerminal(view.state) || view.reward !== null) return one;
    return { ...one, id: (await client.retry(one.id)).id };
  });
}
