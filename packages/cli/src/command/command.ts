// What a command is: a name, one sentence, options and examples. Help, docs/cli.md and argument parsing are made from it.

import { definedOf } from '@millrace/protocol/plain';
import type { Io } from '../terminal/io.ts';

export type { Io } from '../terminal/io.ts';

export interface Option {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  /** The option may be repeated; read it with `list`. */
  readonly multiple?: boolean;
  /** The placeholder for the value in help: `URL`, `N`. */
  readonly value?: string;
  readonly describe: string;
}

export interface Arguments {
  readonly positionals: readonly string[];
  text(name: string): string | undefined;
  flag(name: string): boolean;
  /** Every value of an option that may be repeated. */
  list(name: string): readonly string[];
  /** A whole number of at least `least`; a UsageError otherwise. */
  count(name: string, least: number): number | undefined;
  /** A decimal number of at least `least`; a UsageError otherwise. */
  number(name: string, least: number): number | undefined;
  /** Milliseconds from `90s`, `10m`, `2h` or `500ms`; a UsageError otherwise. */
  duration(name: string): number | undefined;
  /** One of `choices`; a UsageError otherwise. */
  choice<T extends string>(name: string, choices: readonly T[]): T | undefined;
}

export interface Command {
  /** As it is typed, with the group where it has one: `show`, `backend add`. */
  readonly name: string;
  readonly summary: string;
  /**
   * What follows the name: `<id>` is required, `[file]` optional, and `…` inside either takes any number.
   * A command without it refuses every positional argument.
   */
  readonly positional?: string;
  readonly options: Readonly<Record<string, Option>>;
  readonly examples: readonly string[];
  /** Returns the exit code: 0, or 1 when the command could not do what was asked. */
  run(args: Arguments, io: Io): Promise<number>;
}

/** Commands that share their first word: `backend add`, `backend ls`. */
export interface CommandGroup {
  readonly name: string;
  readonly summary: string;
  readonly actions: Readonly<Record<string, Command>>;
  /** The action that runs when none is named. */
  readonly usual: string;
  /** A first word that is no action belongs to the usual one: `eval tasks.jsonl`. */
  readonly isOpen?: boolean;
}

export function isGroup(command: Command | CommandGroup): command is CommandGroup {
  return 'actions' in command;
}

/** The command line is wrong; exit code 2. */
export class UsageError extends Error {}

export const serviceOptions = {
  url: { type: 'string', value: 'URL', describe: 'Address of the service; MILLRACE_URL, or http://127.0.0.1:8007 by default.' },
  key: { type: 'string', value: 'KEY', describe: 'Key of the service; MILLRACE_KEY by default.' },
} as const satisfies Record<string, Option>;

export const jsonOption = { json: { type: 'boolean', describe: 'Writes JSON instead of a table.' } } as const satisfies Record<
  string,
  Option
>;

export function toServiceAddress(args: Arguments, io: Io): { url: string; key?: string } {
  const url = args.text('url') ?? (io.env.MILLRACE_URL || 'http://127.0.0.1:8007');
  const key = args.text('key') ?? (io.env.MILLRACE_KEY || undefined);
  checkHttpAddress(url, '--url ');
  return definedOf({ url, key });
}

/** `option` stands before the address in the message. */
export function checkHttpAddress(url: string, option = ''): void {
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return;
  const meant = /^[\w.-]+:\d+(\/|$)/.test(url) ? `; did you mean http://${url}?` : '';
  throw new UsageError(`${option}${url} is not an http address${meant}`);
}
