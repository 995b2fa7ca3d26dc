// `millrace doctor`: what this machine has, what is missing, and how to get it. It takes the options of `serve`, and fails when
// `serve` with the same options would.

import type { Check } from '@millrace/server';
import type { Arguments, Command, Io } from '../command/command.ts';
import { openPaint, padEnd, wantsColor, width, wrap } from '../terminal/text.ts';
import { serveOptions, toServeSettings } from './config-options.ts';
import { runChecks } from './doctor-checks.ts';
import { withModelFolder } from './model-name.ts';

export const doctorCommand: Command = {
  name: 'doctor',
  summary: 'Checks everything that `millrace serve` needs, and shows how to get what is missing. It takes the same options.',
  options: {
    ...serveOptions,
    json: { type: 'boolean', describe: 'Writes the checks as one JSON array.' },
  },
  examples: ['millrace doctor', 'millrace doctor --data /scratch/millrace --tokenizer models/qwen3', 'millrace doctor --json'],
  run: runDoctor,
};

async function runDoctor(args: Arguments, io: Io): Promise<number> {
  const settings = toServeSettings(args, io);
  const config = await withModelFolder(settings.config, { ...settings, io }).catch(() => settings.config); // a check says that it is not there
  const checks = await runChecks({ ...settings, config });
  const look = { columns: Math.min(io.stdout.columns ?? 100, 120), color: wantsColor(io.stdout, io.env) };
  io.stdout.write(args.flag('json') ? `${JSON.stringify(checks, undefined, 2)}\n` : renderChecks(checks, look));
  return checks.some((check) => check.level === 'fail') ? 1 : 0;
}

const marks = { ok: ['✔', 'green'], warn: ['!', 'yellow'], fail: ['✖', 'red'] } as const;

export function renderChecks(checks: readonly Check[], { columns, color }: { readonly columns: number; readonly color: boolean }): string {
  const paint = openPaint(color);
  const names = Math.max(...checks.map((check) => width(check.name))) + 2;
  const indent = ' '.repeat(names + 2);
  const lines = checks.flatMap((check) => {
    const [mark, colour] = marks[check.level];
    const [first = '', ...rest] = wrap(check.seen, columns - names - 4);
    return [
      `${paint(colour, mark)} ${padEnd(check.name, names)}${first}`,
      ...rest.map((line) => indent + line),
      // Never wrapped: it is there to be copied.
      ...(check.level === 'ok' ? [] : [`${indent}${paint('cyan', `→ ${check.remedy}`)}`]),
    ];
  });
  return `${[...lines, '', renderVerdict(checks)].join('\n')}\n`;
}

function renderVerdict(checks: readonly Check[]): string {
  const namesAt = (level: Check['level']) => checks.filter((check) => check.level === level).map((check) => check.name);
  const [failed, weak] = [namesAt('fail'), namesAt('warn')];
  if (failed.length > 0) return `Not ready: millrace serve would not start. Fix ${failed.join(', ')}.`;
  if (weak.length > 0) return `Ready: millrace serve works here. Worth a look: ${weak.join(', ')}.`;
  return 'Ready: this machine has everything that Millrace needs.';
}
