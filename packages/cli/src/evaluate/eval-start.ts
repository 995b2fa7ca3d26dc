// Starts an evaluation from a file of tasks, or finds the one that the same command started before and that has not ended.

import { createHash, randomUUID } from 'node:crypto';
import { basename, extname } from 'node:path';
import type { Client } from '@millrace/client';
import { definedOf, type EvaluationInput, type EvaluationView, evaluationRequest } from '@millrace/protocol';
import { type Arguments, type Option, UsageError } from '../command/command.ts';
import { locateFaults } from '../tasks/faults.ts';
import { readTasks } from '../tasks/read-tasks.ts';
import { readPairs, samplingOptions, toSamplingFields } from '../tasks/sampling-options.ts';
import type { Io } from '../terminal/io.ts';
import { toCount } from '../terminal/text.ts';

export const runOptions = {
  n: { type: 'string', short: 'n', value: 'N', describe: 'How many samples each task gets; 1 by default.' },
  scenario: { type: 'string', value: 'NAME', describe: 'The scenario of the tasks, where the lines do not name it.' },
  name: {
    type: 'string',
    value: 'ID',
    describe: 'The id of the evaluation. The same id with the same content is the same evaluation, even after it has ended.',
  },
  'correct-at': {
    type: 'string',
    value: 'R',
    describe: 'For pass@k: a sample is correct if its reward is at least this; by default the highest reward of its task.',
  },
  ...samplingOptions,
  set: {
    type: 'string',
    value: 'KEY=VALUE',
    multiple: true,
    describe: 'Any other field of the request, such as priority=10 or requires=\'{"gpu": "a100"}\'.',
  },
  detach: { type: 'boolean', describe: 'Prints the id and does not wait.' },
} as const satisfies Record<string, Option>;

export async function startEvaluation(client: Client, args: Arguments, io: Io): Promise<EvaluationView> {
  const { source, lines, tasks, scenario } = await readTasks(args, io, 'an evaluation');
  const n = args.count('n', 1) ?? 1;
  const written = {
    scenario,
    n,
    ...toSamplingFields(args),
    ...definedOf({ correct_at: args.number('correct-at', 0) }),
    tasks,
    ...readPairs(args, 'set'),
  };
  const request = toRequest(written, source);
  if (n > 1 && written.sampling?.temperature === 0)
    io.stderr.write(`! at temperature 0 the ${n} samples of a task are nearly equal: pass@k says little, and --n 1 costs less\n`);
  const name = args.text('name');
  const open = name === undefined ? await findOpen(client, request) : undefined;
  try {
    const evaluation = open ?? (await client.evaluations.create({ ...request, id: name ?? makeId(source) }));
    const { ended, total } = evaluation.samples;
    if (ended > 0 && evaluation.state === 'open')
      io.stderr.write(`continues evaluation ${evaluation.id}: ${toCount(ended)} of ${toCount(total)} samples have ended\n`);
    return evaluation;
  } catch (error) {
    throw locateFaults(error, { source, lines });
  }
}

/** The digest of the request is in its metadata, so that the same command finds what it started. */
function toRequest(written: Record<string, unknown>, source: string): EvaluationInput {
  const digest = createHash('sha256').update(JSON.stringify(written)).digest('hex');
  const whole = { metadata: { file: basename(source), request_sha256: digest }, ...written };
  const parsed = evaluationRequest.safeParse(whole);
  if (parsed.success) return { ...parsed.data, ...whole };
  const [issue] = parsed.error.issues;
  throw new UsageError(`${issue?.path.map((part) => `${String(part)}: `).join('') ?? ''}${issue?.message}`);
}

async function findOpen(client: Client, { metadata }: EvaluationInput): Promise<EvaluationView | undefined> {
  for await (const one of client.evaluations.list({ state: 'open' }))
    if (metadata?.request_sha256 !== undefined && one.metadata?.request_sha256 === metadata.request_sha256) return one;
  return undefined;
}

/** Named for the file, so that a list of evaluations can be read. */
function makeId(source: string): string {
  const stem = basename(source, extname(source)).replace(/[^A-Za-z0-9._-]/g, '-');
  return `${/^[A-Za-z0-9]/.test(stem) ? stem.slice(0, 60) : 'e'}-${randomUUID().slice(0, 8)}`;
}
