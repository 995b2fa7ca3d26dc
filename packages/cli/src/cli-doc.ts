// docs/cli.md, made from the command table: every command with its usage, options and examples.

import { type Command, type CommandGroup, isGroup } from './command/command.ts';
import { renderUsage } from './command/help.ts';
import { commands, firstSteps } from './main.ts';

export async function renderCliDoc(): Promise<string> {
  const loaded = await Promise.all(Object.values(commands).map(({ load }) => load()));
  return [
    '# The command line',
    '',
    'This page is made from the command table by `node scripts/write-docs.ts`; `millrace <command> --help` prints the same.',
    '',
    'From nothing to results:',
    '',
    '```sh',
    ...renderSteps(),
    '```',
    '',
    'Commands that talk to a service find it by `--url` or `MILLRACE_URL`, and send the key in `--key` or `MILLRACE_KEY`. Results go to',
    'standard output, everything else to standard error. Exit codes: 0 success, 1 something failed, 2 the command line or its input is wrong.',
    '',
    '| command | what it does |',
    '|---|---|',
    ...Object.entries(commands).map(([name, { summary }]) => `| [${name}](#millrace-${name}) | ${summary} |`),
    ...loaded.flatMap((one) => renderChapter(one)),
    '',
  ].join('\n');
}

function renderSteps(): string[] {
  const longest = Math.max(...firstSteps.map(([line]) => line.length));
  return firstSteps.map(([line, what]) => `${line.padEnd(longest)}   # ${what}`);
}

function renderChapter(command: Command | CommandGroup): string[] {
  if (!isGroup(command)) return ['', `## millrace ${command.name}`, ...renderCommand(command)];
  const actions = Object.values(command.actions).flatMap((action) => ['', `### millrace ${action.name}`, ...renderCommand(action)]);
  const usual = `\`millrace ${command.name}\` alone does \`millrace ${command.name} ${command.usual}\`.`;
  return ['', `## millrace ${command.name}`, '', `${command.summary} ${usual}`, ...actions];
}

function renderCommand(command: Command): string[] {
  const options = Object.entries(command.options).map(([name, { short, value, multiple, describe }]) => {
    const flag = `${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`;
    return `| \`${flag}\`${multiple === true ? ', repeatable' : ''} | ${describe.replaceAll('|', '\\|')} |`;
  });
  return [
    '',
    command.summary,
    '',
    '```sh',
    renderUsage(command),
    '',
    ...command.examples,
    '```',
    ...(options.length === 0 ? [] : ['', '| option | what it does |', '|---|---|', ...options]),
  ];
}
