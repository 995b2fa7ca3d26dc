// `millrace task show`: one task of a file as its scenario reads it.

import { describeIssues, didYouMean } from '@millrace/protocol';
import { loadScenarios, safeParseTask } from '@millrace/scenarios';
import { type Arguments, type Command, type Io, UsageError } from '../command/command.ts';
import { clip } from '../terminal/text.ts';
import { nameOf, readTaskFile } from './task-file.ts';

export const showTaskCommand: Command = {
  name: 'task show',
  summary: 'Shows a task as its scenario reads it: rows of data sets as tasks, with every default.',
  positional: '<file> [task]',
  options: {
    scenario: { type: 'string', value: 'NAME', describe: 'The scenario of lines that name none; swe by default.' },
    scenarios: { type: 'string', value: 'FILES', describe: 'Modules with your own scenarios, separated by commas.' },
    json: { type: 'boolean', describe: 'Writes the whole task as JSON.' },
  },
  examples: ['millrace task show tasks.jsonl', 'millrace task show rows.parquet django__django-11099 --json'],
  run: runShow,
};

async function runShow(args: Arguments, io: Io): Promise<number> {
  const [path = '', wanted] = args.positionals;
  const scenarios = await loadScenarios(args.text('scenarios')?.split(',') ?? []);
  const lines = await readTaskFile(path, args.text('scenario') ?? 'swe');
  const found = lines.find((line, at) => wanted === undefined || nameOf(line) === wanted || String(at + 1) === wanted);
  if (!found)
    throw new UsageError(
      `${path} has no task ${wanted ?? ''}; it has ${lines.length} tasks, such as ${lines.slice(0, 3).map(nameOf).join(', ')}`,
    );
  const scenario = scenarios.get(found.scenario);
  if (!scenario)
    throw new UsageError(
      `there is no scenario ${found.scenario}${didYouMean(found.scenario, scenarios.names())}; there are ${scenarios.names().join(', ')}`,
    );
  const parsed = await safeParseTask(scenario, found.task);
  if (!parsed.success)
    throw new Error(`${path}, task ${nameOf(found)}: ${describeIssues(parsed.error.issues, { value: found.task, schema: scenario.task })}`);
  const task = parsed.data;
  const whole = JSON.stringify({ scenario: scenario.name, task }, undefined, 2);
  io.stdout.write(args.flag('json') ? `${whole}\n` : renderTask(scenario.name, task));
  return 0;
}

const longest = 600;

function renderTask(scenario: string, task: unknown): string {
  const fields = typeof task === 'object' && task !== null ? Object.entries(task) : [];
  const lines = fields.flatMap(([name, value]) => {
    const text = renderValue(value);
    if (text === '') return [];
    return text.includes('\n') ? [`${name}:`, ...text.split('\n').map((line) => `  ${line}`)] : [`${name}: ${text}`];
  });
  return `${[`scenario: ${scenario}`, ...lines].join('\n')}\n`;
}

function renderValue(value: unknown): string {
  if (typeof value === 'string')
    return value.length > longest ? `${value.slice(0, longest)}…\n(${value.length} characters)` : value.trimEnd();
  if (Array.isArray(value) && value.length > 6) return `${value.slice(0, 5).join('\n')}\n(${value.length} in all)`;
  return value === undefined ? '' : clip(JSON.stringify(value), 200);
}
