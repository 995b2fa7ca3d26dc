// `millrace doctor`: what this machine has, what is missing, and how to get it. Fails when a needed thing is missing.

import { type Arguments, type Command, type Io, UsageError } from '../command/command.ts';
import { openPaint, padEnd, wantsColor, width, wrap } from '../terminal/text.ts';
import { configOptions, toConfig } from './config-options.ts';
import { type Check, runChecks } from './doctor-checks.ts';

export const doctorCommand: Command = {
  name: 'doctor',
  summary: 'Says what this machine has for Millrace, what is missing, and the one line that gets it.',
  options: {
    ...configOptions,
    json: { type: 'boolean', describe: 'Writes the checks as one JSON array.' },
  },
  examples: ['millrace doctor', 'millrace doctor --data /scratch/millrace --tokenizer models/qwen3', 'millrace doctor --json'],
  run: runDoctor,
};

async function runDoctor(args: Arguments, io: Io): Promise<number> {
  if (args.positionals.length > 0) throw new UsageError(`doctor takes no ${args.positionals[0]}`);
  const { data, run, http, model, sandbox } = toConfig(args, io, {});
  const { tokenizer } = model;
  const checks = await runChecks({
    ...{ data, run, driver: sandbox.driver, host: http.host, port: http.port },
    ...(tokenizer === undefined ? {} : { tokenizer }),
  });
  const look = { columns: Math.min(io.stdout.columns ?? 100, 120), color: wantsColor(io.stdout, io.env) };
  io.stdout.write(args.flag('json') ? `${JSON.stringify(checks, undefined, 2)}\n` : renderChecks(checks, look));
  return checks.some((check) => check.level === 'fail') ? 1 : 0;
}

const marks = { ok: ['✔', 'green'], warn: ['!', 'yellow'], fail: ['✘', 'red'] } as const;

export function renderChecks(checks: readonly Check[], { columns, color }: { readonly columns: number; readonly color: boolean }): string {
  const paint = openPaint(color);
  const names = Math.max(...checks.map((check) => width(check.name))) + 2;
  const lines = checks.flatMap(({ name, level, seen, remedy }) => {
    const [mark, colour] = marks[level];
    const [first = '', ...rest] = wrap(seen, columns - names - 10);
    const indent = ' '.repeat(names + 8);
    return [
      `${paint(colour, `${mark} ${padEnd(level, 4)}`)}  ${padEnd(name, names)}${first}`,
      ...rest.map((line) => indent + line),
      // Never broken: it is there to be copied.
      ...(remedy === undefined ? [] : [`${indent}${paint('cyan', `→ ${remedy}`)}`]),
    ];
  });
  return `${[...lines, '', renderVerdict(checks)].join('\n')}\n`;
}

function renderVerdict(checks: readonly Check[]): string {
  const missing = checks.filter((check) => check.level === 'fail').map((check) => check.name);
  if (missing.length > 0) return `Millrace cannot work here yet: ${missing.join(', ')}.`;
  const weak = checks.filter((check) => check.level === 'warn').map((check) => check.name);
  return weak.length === 0 ? 'This machine has all that Millrace needs.' : `Millrace works here. Worth a look: ${weak.join(', ')}.`;
}
