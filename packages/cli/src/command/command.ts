// What a command is: a name, one sentence, its options and examples, from which help and the parsing of arguments are made.

import type { Readable, Writable } from 'node:stream';
import { parseArgs } from 'node:util';
import { padEnd, wrap } from '../terminal/text.ts';
import { chooseNearest } from './nearest.ts';

/** Where a command reads and writes; a test hands in its own. */
export interface Io {
  readonly stdin: Readable & { readonly isTTY?: boolean; setRawMode?(mode: boolean): unknown };
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number; readonly rows?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Calls back at every Ctrl-C until the returned function is called. */
  onInterrupt(listener: () => void): () => void;
}

export interface Option {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  /** What stands for the value in help: `URL`, `N`. */
  readonly value?: string;
  readonly describe: string;
}

export interface Arguments {
  readonly positionals: readonly string[];
  text(name: string): string | undefined;
  flag(name: string): boolean;
  /** A whole number of at least `least`; a UsageError otherwise. */
  count(name: string, least: number): number | undefined;
}

export interface Command {
  readonly name: string;
  readonly summary: string;
  /** What follows the name: `[file.jsonl|-]`. */
  readonly positional?: string;
  readonly options: Readonly<Record<string, Option>>;
  readonly examples: readonly string[];
  /** Answers the exit code: 0, or 1 when what was asked for did not come about. */
  run(args: Arguments, io: Io): Promise<number>;
}

/** The caller wrote something that cannot be meant; exit code 2. */
export class UsageError extends Error {}

export const serviceOptions = {
  url: { type: 'string', value: 'URL', describe: 'Address of the service; MILLRACE_URL, or http://127.0.0.1:8007.' },
  key: { type: 'string', value: 'KEY', describe: 'Key of the service; MILLRACE_KEY.' },
} as const satisfies Record<string, Option>;

export function toServiceAddress(args: Arguments, io: Io): { url: string; key?: string } {
  const url = args.text('url') ?? (io.env.MILLRACE_URL || 'http://127.0.0.1:8007');
  const key = args.text('key') ?? (io.env.MILLRACE_KEY || undefined);
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) throw new UsageError(`--url ${url} is not an http address`);
  return { url, ...(key === undefined ? {} : { key }) };
}

export function parseArguments(command: Command, argv: readonly string[]): Arguments {
  const options = Object.fromEntries(
    Object.entries(command.options).map(([name, { type, short }]) => [name, short ? { type, short } : { type }]),
  );
  refuseUnknown(command, argv);
  try {
    const { values, positionals } = parseArgs({ args: [...argv], options, allowPositionals: true });
    return toArguments(values, positionals);
  } catch (error) {
    throw new UsageError(error instanceof Error ? (error.message.split('. ')[0] ?? '') : String(error));
  }
}

function refuseUnknown(command: Command, argv: readonly string[]): void {
  const names = Object.keys(command.options);
  const end = argv.indexOf('--');
  for (const word of end < 0 ? argv : argv.slice(0, end)) {
    const [, name] = /^--([^=]+)/.exec(word) ?? [];
    if (name === undefined || names.includes(name)) continue;
    const nearest = chooseNearest(name, names);
    throw new UsageError(`${command.name} has no option --${name}${nearest === undefined ? '' : `; did you mean --${nearest}?`}`);
  }
}

function toArguments(values: Readonly<Record<string, unknown>>, positionals: readonly string[]): Arguments {
  const text = (name: string) => {
    const value = values[name];
    return typeof value === 'string' ? value : undefined;
  };
  return {
    positionals,
    text,
    flag: (name) => values[name] === true,
    count(name, least) {
      const value = text(name);
      if (value === undefined) return undefined;
      if (/^\d+$/.test(value) && Number(value) >= least && Number.isSafeInteger(Number(value))) return Number(value);
      throw new UsageError(`--${name} ${value} is not a whole number of at least ${least}`);
    },
  };
}

export function renderHelp(command: Command): string {
  const usage = ['millrace', command.name, command.positional, '[options]'].filter((part) => part !== undefined).join(' ');
  const options = Object.entries({ ...command.options, ...helpOption }).map(([name, option]): [string, string] => {
    const short = option.short === undefined ? '' : `-${option.short}, `;
    return [`${short}--${name}${option.value === undefined ? '' : ` ${option.value}`}`, option.describe];
  });
  const examples = command.examples.map((line) => `  ${line}`);
  return [command.summary, '', `Usage: ${usage}`, '', 'Options:', ...renderTable(options), '', 'Examples:', ...examples, ''].join('\n');
}

const helpOption: Record<string, Option> = { help: { type: 'boolean', short: 'h', describe: 'Shows this.' } };

/** Two columns, the second wrapped under itself. */
export function renderTable(rows: readonly (readonly [string, string])[]): string[] {
  const left = Math.max(...rows.map(([name]) => name.length)) + 4;
  return rows.flatMap(([name, text]) => wrap(text, 96 - left).map((line, index) => padEnd(index === 0 ? `  ${name}` : '', left) + line));
}
