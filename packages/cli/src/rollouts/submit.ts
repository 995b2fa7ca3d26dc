// `millrace submit`: JSON lines in, JSON lines out, each rollout when it ends. Standard output carries only rollouts.

import { randomUUID } from 'node:crypto';
import { type Client, openClient } from '@millrace/client';
import { definedOf } from '@millrace/protocol';
import { type Arguments, type Command, serviceOptions, toServiceAddress, UsageError } from '../command/command.ts';
import { renderFaults, toReason } from '../tasks/faults.ts';
import { readHarborInput } from '../tasks/harbor-input.ts';
import { type InputText, readInput } from '../tasks/read-input.ts';
import { samplingOptions, toSamplingFields } from '../tasks/sampling-options.ts';
import { checkScenarioOption, parseTaskLines, type TaskLines } from '../tasks/task-lines.ts';
import type { Io } from '../terminal/io.ts';
import { toCount } from '../terminal/text.ts';
import { retryUnscored } from './retry.ts';
import { type SubmitPlan, submitAndFollow, submitOnly } from './submit-run.ts';

export const submitCommand: Command = {
  name: 'submit',
  summary: 'Submits tasks from JSON lines and writes each rollout as one JSON line when it ends.',
  positional: '[file.jsonl|-]',
  options: {
    scenario: {
      type: 'string',
      value: 'NAME',
      describe: 'The scenario of lines that name none; a line without a `task` field is then a bare task.',
    },
    harbor: {
      type: 'string',
      value: 'FOLDER',
      multiple: true,
      describe: 'Submits Harbor task folders in place of a file: one with a task.toml, or one that contains such folders.',
    },
    siblings: { type: 'string', short: 'n', value: 'N', describe: 'Makes each line a group of N rollouts.' },
    ...samplingOptions,
    trajectories: { type: 'boolean', describe: 'Adds the trajectory to each rollout.' },
    'skip-bad': { type: 'boolean', describe: 'Leaves out lines that cannot be run, instead of submitting nothing.' },
    'retry-failed': {
      type: 'boolean',
      describe: 'Submits tasks of the file whose rollouts ended without a reward again, under their id with a number: r-1234.1.',
    },
    detach: {
      type: 'boolean',
      describe: 'Writes the tasks with their ids as JSON lines and does not wait. Submitting that output again waits for the results.',
    },
    patience: {
      type: 'string',
      value: 'TIME',
      describe: 'How long to wait for a service that went away, such as 90s or 2h; 10m by default.',
    },
    ...serviceOptions,
  },
  examples: [
    'millrace submit tasks.jsonl > results.jsonl',
    'millrace submit --scenario math --siblings 8 --max-tokens 1024 --trajectories questions.jsonl > results.jsonl',
    'millrace submit --harbor tasks/ --siblings 8 > results.jsonl',
    'millrace submit tasks.jsonl --detach > started.jsonl && millrace submit started.jsonl > results.jsonl',
    'millrace submit tasks.jsonl --sampling top_p=0.95 --limits max_turns=20 > results.jsonl',
    'echo \'{"scenario":"math","task":{"question":"6 * 7?","answer":"42"}}\' | millrace submit | jq .reward',
  ],
  run: runSubmit,
};

async function runSubmit(args: Arguments, io: Io): Promise<number> {
  const address = toServiceAddress(args, io);
  const patienceMs = args.duration('patience') ?? 600_000;
  const read = await readSubmitInput(args, io);
  await using client = openClient({ ...address, timeoutMs: patienceMs });
  const plan = { ...(await choosePlan(client, read, { args, io })), patienceMs, address };
  return args.flag('detach') ? await submitOnly(client, plan, io) : await submitAndFollow(client, plan, io);
}

type SubmitInput = InputText & TaskLines;

async function readSubmitInput(args: Arguments, io: Io): Promise<SubmitInput> {
  const folders = args.list('harbor');
  if (folders.length > 0 && args.positionals.length > 0) throw new UsageError('submit takes a file or --harbor, not both');
  const fields = toSamplingFields(args);
  const siblings = args.count('siblings', 1) ?? 1;
  const text = folders.length > 0 ? await readHarborInput(folders) : await readInput(args.positionals[0], io);
  const scenario = args.text('scenario');
  const lines = parseTaskLines(text.content, { siblings, prefix: `g-${randomUUID().slice(0, 8)}`, fields, ...definedOf({ scenario }) });
  if (lines.submissions.length + lines.bad.length === 0) throw new UsageError(`${text.source} has no tasks`);
  checkScenarioOption(scenario, lines, text.source);
  return { ...text, ...lines };
}

/** Every line is checked before any is submitted. Bad ones end the command, unless they are to be skipped. */
async function choosePlan(
  client: Client,
  { source, names, submissions, lines, bad }: SubmitInput,
  { args, io }: { readonly args: Arguments; readonly io: Io },
): Promise<Omit<SubmitPlan, 'patienceMs' | 'address'>> {
  const refused = (await client.check(submissions)).map((fault) => ({ line: lines[fault.index] ?? 0, reason: toReason(fault) }));
  const faults = [...bad, ...refused];
  const isBad = new Set(faults.map(({ line }) => line));
  const good = submissions.flatMap((one, index) => (isBad.has(lines[index] ?? 0) ? [] : [{ one, line: lines[index] ?? 0 }]));
  if (faults.length > 0) {
    const total = new Set([...lines, ...isBad]).size;
    const count = `${toCount(isBad.size)} of ${toCount(total)} ${names === undefined ? 'lines' : 'tasks'} cannot be run`;
    const rows = renderFaults(faults, { source, ...definedOf({ names }) });
    if (good.length === 0) throw new UsageError([`nothing was submitted: ${count}`, ...rows].join('\n'));
    if (!args.flag('skip-bad'))
      throw new UsageError([`nothing was submitted: ${count}`, ...rows, 'To submit the others: add --skip-bad'].join('\n'));
    io.stderr.write(`${[`${count} and are skipped:`, ...rows].join('\n')}\n`);
  }
  // Ids are made here, so that a submission can be repeated by this process or by a later one.
  const named = good.map(({ one }) => ({ ...one, id: one.id ?? `r-${randomUUID()}` }));
  const trajectories = args.flag('trajectories');
  const url = args.text('url');
  return {
    source,
    submissions: args.flag('retry-failed') ? await retryUnscored(client, named) : named,
    lines: good.map(({ line }) => line),
    trajectories,
    again: [...(trajectories ? ['--trajectories'] : []), ...(url === undefined ? [] : ['--url', url])],
    ...definedOf({ names }),
  };
}
