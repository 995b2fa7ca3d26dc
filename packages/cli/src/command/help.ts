// The help of a command and of a group of commands, as plain text for the terminal.

import { padEnd, wrap } from '../terminal/text.ts';
import type { Command, CommandGroup, Option } from './command.ts';

export function renderHelp(command: Command): string {
  const options = Object.entries({ ...command.options, ...helpOption }).map(([name, option]): [string, string] => {
    const short = option.short === undefined ? '' : `-${option.short}, `;
    const value = option.value === undefined ? '' : ` ${option.value}`;
    return [`${short}--${name}${value}${option.multiple === true ? ' …' : ''}`, option.describe];
  });
  return join([
    ...wrap(command.summary, helpColumns),
    '',
    `Usage: ${renderUsage(command)}`,
    '',
    'Options:',
    ...renderRows(options),
    '',
    'Examples:',
    ...command.examples.map((line) => `  ${line}`),
  ]);
}

export function renderUsage({ name, positional }: Command): string {
  return ['millrace', name, positional, '[options]'].filter((part) => part !== undefined).join(' ');
}

export function renderGroupHelp({ name, summary, actions, usual }: CommandGroup): string {
  const rows = Object.entries(actions).map(([action, command]): [string, string] => [
    [action, command.positional].filter((part) => part !== undefined).join(' '),
    command.summary,
  ]);
  return join([
    summary,
    '',
    `Usage: millrace ${name} <action> [options]`,
    '',
    'Actions:',
    ...renderRows(rows),
    '',
    'Examples:',
    ...Object.values(actions).flatMap(({ examples }) => (examples[0] === undefined ? [] : [`  ${examples[0]}`])),
    '',
    `Without an action, millrace ${name} does \`${usual}\`. For the options of an action: millrace ${name} <action> --help`,
  ]);
}

/** Two columns, the second wrapped under itself. */
export function renderRows(rows: readonly (readonly [string, string])[]): string[] {
  const left = Math.max(...rows.map(([name]) => name.length)) + 4;
  return rows.flatMap(([name, text]) =>
    wrap(text, helpColumns - left).map((line, index) => padEnd(index === 0 ? `  ${name}` : '', left) + line),
  );
}

const helpColumns = 96;
const helpOption: Record<string, Option> = { help: { type: 'boolean', short: 'h', describe: 'Shows this help.' } };

function join(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`;
}
