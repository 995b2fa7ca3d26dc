// `millrace eval`: a fixed set of tasks, n samples each, measured, listed, shown, followed, retried and cancelled.

import { type Client, openClient } from '@millrace/client';
import { type EvaluationView, evaluationStates } from '@millrace/protocol';
import { type Arguments, type Command, type CommandGroup, jsonOption, serviceOptions, toServiceAddress } from '../command/command.ts';
import { confirm, yesOption } from '../command/confirm.ts';
import { findAll, findEvaluation } from '../command/find-id.ts';
import type { Io } from '../terminal/io.ts';
import { renderTable, toTableOptions } from '../terminal/table.ts';
import { openPaint, toCount, wantsColor } from '../terminal/text.ts';
import { followEvaluation } from './eval-follow.ts';
import { renderEvaluation, toEvaluationCells } from './eval-render.ts';
import { writeReport } from './eval-report.ts';
import { runOptions, startEvaluation } from './eval-start.ts';

const outputOptions = {
  json: { type: 'boolean', describe: 'Writes the numbers as JSON instead of a table.' },
  report: { type: 'string', value: 'FILE', describe: 'Writes the numbers and every task with its samples to a JSON file.' },
} as const;

const patience = {
  patience: {
    type: 'string',
    value: 'TIME',
    describe: 'How long to wait for a service that went away, such as 90s or 2h; 10m by default.',
  },
} as const;

function openPatientClient(args: Arguments, io: Io): Client {
  return openClient({ ...toServiceAddress(args, io), timeoutMs: args.duration('patience') ?? 600_000 });
}

const run: Command = {
  name: 'eval run',
  summary: 'Measures a set of tasks, one JSON object in each line. Run it again to continue after an interruption.',
  positional: '[tasks.jsonl|-]',
  options: { ...runOptions, ...outputOptions, ...patience, ...serviceOptions },
  examples: [
    'millrace eval tasks.jsonl --n 4',
    'millrace eval gsm8k.jsonl --scenario math --n 8 --temperature 0.6 --report gsm8k.json',
    'millrace eval tasks.jsonl --n 4 --name step-100 --json | jq .mean.value',
  ],
  async run(args, io) {
    await using client = openPatientClient(args, io);
    const evaluation = await startEvaluation(client, args, io);
    if (args.flag('detach')) {
      io.stdout.write(args.flag('json') ? `${JSON.stringify(evaluation)}\n` : `${evaluation.id}\n`);
      return 0;
    }
    return await followToEnd(client, evaluation, { args, io });
  },
};

const watch: Command = {
  name: 'eval watch',
  summary: 'Shows the progress of an evaluation until it has ended, and then its numbers.',
  positional: '<id>',
  options: { ...outputOptions, ...patience, ...serviceOptions },
  examples: ['millrace eval watch step-100', 'millrace eval watch step-100 --report step-100.json'],
  async run(args, io) {
    await using client = openPatientClient(args, io);
    return await followToEnd(client, await findEvaluation(client, args.positionals[0] ?? ''), { args, io });
  },
};

const retry: Command = {
  name: 'eval retry',
  summary: 'Takes every sample that ended without a reward again, and follows the evaluation to its end.',
  positional: '<id>',
  options: { ...outputOptions, ...patience, ...serviceOptions },
  examples: ['millrace eval retry step-100', 'millrace eval retry step-100 --report step-100.json'],
  async run(args, io) {
    await using client = openPatientClient(args, io);
    const { id } = await findEvaluation(client, args.positionals[0] ?? '');
    return await followToEnd(client, await client.evaluations.retry(id), { args, io });
  },
};

async function followToEnd(
  client: Client,
  begun: EvaluationView,
  { args, io }: { readonly args: Arguments; readonly io: Io },
): Promise<number> {
  const evaluation = await followEvaluation(client, begun, io);
  await writeOutputs(client, evaluation, { args, io });
  if (evaluation.state !== 'open') return evaluation.state === 'done' && evaluation.samples.scored > 0 ? 0 : 1;
  io.stderr.write(`The evaluation goes on. To follow it: millrace eval watch ${begun.id}\nTo stop it: millrace eval cancel ${begun.id}\n`);
  return 1;
}

async function writeOutputs(
  client: Client,
  evaluation: EvaluationView,
  { args, io }: { readonly args: Arguments; readonly io: Io },
): Promise<void> {
  const report = args.text('report');
  if (report !== undefined) await writeReport(client, evaluation, report);
  const text = args.flag('json')
    ? JSON.stringify(evaluation)
    : renderEvaluation(evaluation, openPaint(wantsColor(io.stdout, io.env))).join('\n');
  io.stdout.write(`${text}\n`);
}

const list: Command = {
  name: 'eval ls',
  summary: 'Lists evaluations, the newest first.',
  options: {
    state: { type: 'string', value: 'STATE', describe: `Only evaluations in this state: ${evaluationStates.join(', ')}.` },
    limit: { type: 'string', value: 'N', describe: 'At most this many; 20 by default.' },
    ...jsonOption,
    ...serviceOptions,
  },
  examples: ['millrace eval ls', 'millrace eval ls --state open --json'],
  async run(args, io) {
    const [state, limit] = [args.choice('state', evaluationStates), args.count('limit', 1) ?? 20];
    await using client = openClient(toServiceAddress(args, io));
    const found: EvaluationView[] = [];
    for await (const one of client.evaluations.list(state === undefined ? {} : { state })) found.push(one);
    const shown = found.slice(-limit).reverse();
    if (args.flag('json')) io.stdout.write(`${JSON.stringify(shown, undefined, 2)}\n`);
    else if (shown.length === 0) io.stderr.write('There is no such evaluation. Start one: millrace eval run --help\n');
    else {
      const rows = shown.map((one) => ({ cells: toEvaluationCells(one), colour: one.state === 'open' ? undefined : ('dim' as const) }));
      const heads = ['evaluation', 'state', 'samples', 'mean', 'stderr', 'pass@k', 'unscored', 'scenario'];
      io.stdout.write(`${renderTable(heads, rows, toTableOptions(io, [2, 3, 4, 6])).join('\n')}\n`);
    }
    return 0;
  },
};

const show: Command = {
  name: 'eval show',
  summary: 'Shows the numbers of an evaluation, so far or final.',
  positional: '<id>',
  options: { ...outputOptions, ...serviceOptions },
  examples: ['millrace eval show step-100', 'millrace eval show step-100 --report step-100.json'],
  async run(args, io) {
    await using client = openClient(toServiceAddress(args, io));
    await writeOutputs(client, await findEvaluation(client, args.positionals[0] ?? ''), { args, io });
    return 0;
  },
};

const cancel: Command = {
  name: 'eval cancel',
  summary: 'Cancels evaluations. What was measured stays readable.',
  positional: '<id …>',
  options: { ...yesOption, ...serviceOptions },
  examples: ['millrace eval cancel step-100 --yes'],
  async run(args, io) {
    await using client = openClient(toServiceAddress(args, io));
    const ids = (await findAll(args.positionals, (start) => findEvaluation(client, start))).map(({ id }) => id);
    const what = ids.length === 1 ? `evaluation ${ids[0]}` : `${ids.length} evaluations`;
    if (!(await confirm(`Cancel ${what}?`, args, io))) return 1;
    for (const id of ids) {
      const { state, samples } = await client.evaluations.cancel(id);
      io.stdout.write(`${id} is ${state}; ${toCount(samples.scored)} of ${toCount(samples.total)} samples were scored\n`);
    }
    return 0;
  },
};

export const evalCommands: CommandGroup = {
  name: 'eval',
  summary: 'Measures the policy on a fixed set of tasks: mean reward, pass@k, and what failed.',
  actions: { run, ls: list, show, watch, retry, cancel },
  usual: 'run',
  isOpen: true,
};
