// `millrace task attack`: plays a catalogue of reward hackers against tasks and their verifiers. Exit code 0 if none got through.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { didYouMean } from '@millrace/protocol';
import { hackers } from '../attack/hackers/catalogue.ts';
import type { Hacker } from '../attack/hackers/hacker.ts';
import { type AttackResult, runAttacks } from '../attack/run-attacks.ts';
import { type Arguments, type Command, type Io, jsonOption, UsageError } from '../command/command.ts';
import { openLiveLine } from '../terminal/live-line.ts';
import { bar, toCount, toDuration } from '../terminal/text.ts';
import { isThrough, renderAttacks, renderCatalogue, toAttackJson } from './attack-report.ts';
import { canRun, readTaskConfig, scenarioOptions } from './task-config.ts';
import { nameOf, readTaskFile, type TaskLine } from './task-file.ts';

const usualLimitS = 60;

export const attackCommand: Command = {
  name: 'task attack',
  summary: 'Plays reward hackers against tasks and their verifier in real sandboxes, without a model, and says which got through.',
  positional: '[file or folder]',
  options: {
    ...scenarioOptions,
    only: { type: 'string', value: 'NAMES', describe: 'Plays only these hackers or kinds (forge, dodge, freeze), separated by commas.' },
    list: { type: 'boolean', describe: 'Lists the hackers, what each does, and how to close it.' },
    limit: { type: 'string', value: 'N', describe: 'Attacks the first N tasks only.' },
    'time-limit': {
      type: 'string',
      value: 'TIME',
      describe: 'The longest time to judge one attack; 60s by default, or less where the task has less.',
    },
    parallel: { type: 'string', value: 'N', describe: 'How many attacks run at a time; 2 by default.' },
    ...jsonOption,
  },
  examples: [
    'millrace task attack tasks.jsonl',
    'millrace task attack tasks.jsonl --scenarios scenario.py --only forge,superscript',
    'millrace task attack harbor-tasks/ --limit 3 --json',
    'millrace task attack --list',
  ],
  run: runAttack,
};

async function runAttack(args: Arguments, io: Io): Promise<number> {
  const chosen = chooseHackers(args.text('only'));
  if (args.flag('list')) {
    io.stdout.write(args.flag('json') ? `${JSON.stringify(chosen, undefined, 2)}\n` : renderCatalogue(chosen, io));
    return 0;
  }
  const [path] = args.positionals;
  if (path === undefined) throw new UsageError('name a file or a folder of tasks, or use --list');
  const lines = (await readTaskFile(path, args.text('scenario') ?? 'swe')).slice(0, args.count('limit', 1));
  const folder = await mkdtemp(join(tmpdir(), 'millrace-')); // short: sockets are in it
  const cancel = new AbortController();
  const release = io.onInterrupt(() => cancel.abort(new Error('interrupted')));
  try {
    const config = readTaskConfig(args, folder);
    if (!(await canRun(config, io))) return 1;
    const parallel = args.count('parallel', 1) ?? 2;
    const limitS = (args.duration('time-limit') ?? usualLimitS * 1000) / 1000;
    const results = await play(lines, { config, folder, hackers: chosen, parallel, limitS, io, signal: cancel.signal });
    io.stdout.write(
      args.flag('json') ? `${JSON.stringify(toAttackJson(lines.map(nameOf), results), undefined, 2)}\n` : renderAttacks(results, io),
    );
    return cancel.signal.aborted || results.some(isThrough) ? 1 : 0;
  } finally {
    release();
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

function chooseHackers(only: string | undefined): readonly Hacker[] {
  if (only === undefined) return hackers;
  const names = only.split(',').map((name) => name.trim());
  const known = [...new Set(hackers.flatMap(({ name, kind }) => [name, kind]))];
  const unknown = names.find((name) => !known.includes(name));
  if (unknown === undefined) return hackers.filter(({ name, kind }) => names.includes(name) || names.includes(kind));
  throw new UsageError(`there is no hacker ${unknown}${didYouMean(unknown, known)} --list shows all`);
}

type Playing = Omit<Parameters<typeof runAttacks>[1], 'onResult'> & { readonly io: Io };

async function play(lines: readonly TaskLine[], { io, ...options }: Playing): Promise<AttackResult[]> {
  const results: AttackResult[] = [];
  const total = lines.length * options.hackers.length;
  const startMs = performance.now();
  const render = () => `${toCount(results.length)}/${toCount(total)} attacks played  after ${toDuration(performance.now() - startMs)}`;
  const live = openLiveLine(io, {
    render: (columns) => `▕${bar(results.length / total, Math.min(30, columns - 60))}▏ ${render()}`,
    renderPlain: render,
  });
  const onResult = (result: AttackResult) => {
    results.push(result);
    if (isThrough(result)) live.say(`${result.task}: ${result.hacker?.name ?? ''} ${result.outcome}: ${result.why.slice(0, 300)}`);
    live.update();
  };
  try {
    await runAttacks(
      lines.map((line) => ({ name: nameOf(line), ...line })),
      { ...options, onResult },
    );
  } finally {
    live.close();
  }
  return results;
}
