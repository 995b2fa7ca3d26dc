// Turns the words after a command's name into its arguments. Anything that the command does not declare is a UsageError.

import { parseArgs } from 'node:util';
import { chooseNearest, definedOf, didYouMean, messageOf } from '@millrace/protocol/plain';
import { type Arguments, type Command, UsageError } from './command.ts';

export function parseArguments(command: Command, argv: readonly string[]): Arguments {
  const options = Object.fromEntries(
    Object.entries(command.options).map(([name, { type, short, multiple }]) => [name, definedOf({ type, short, multiple })]),
  );
  checkOptions(command, argv);
  const { values, positionals } = readWords(argv, options);
  checkPositionals(command, positionals);
  return toArguments(values, positionals);
}

function readWords(argv: readonly string[], options: NonNullable<Parameters<typeof parseArgs>[0]>['options'] & object) {
  try {
    return parseArgs({ args: [...argv], options, allowPositionals: true });
  } catch (error) {
    throw new UsageError(messageOf(error).split('. ')[0] ?? '');
  }
}

function checkOptions(command: Command, argv: readonly string[]): void {
  const names = Object.keys(command.options);
  const end = argv.indexOf('--');
  for (const word of end < 0 ? argv : argv.slice(0, end)) {
    const [, name] = /^--([^=]+)/.exec(word) ?? [];
    if (name === undefined || names.includes(name)) continue;
    const nearest = chooseNearest(name, names);
    throw new UsageError(`${command.name} has no option --${name}${nearest === undefined ? '' : `; did you mean --${nearest}?`}`);
  }
}

function checkPositionals({ name, positional = '' }: Command, given: readonly string[]): void {
  const places = positional.match(/<[^>]*>|\[[^\]]*\]/g) ?? [];
  const least = places.filter((place) => place.startsWith('<')).length;
  const most = places.some((place) => place.includes('…')) ? Number.POSITIVE_INFINITY : places.length;
  if (given.length < least) throw new UsageError(`${name} needs ${places[given.length]}`);
  if (given.length <= most) return;
  const wanted = places.length === 0 ? 'no arguments' : `only ${positional}`;
  throw new UsageError(`${name} takes ${wanted}, but got ${given[places.length]}`);
}

function toArguments(values: Readonly<Record<string, unknown>>, positionals: readonly string[]): Arguments {
  const text = (name: string) => {
    const value = values[name];
    return typeof value === 'string' ? value : undefined;
  };
  /** Reads an option that must match; `wanted` completes the message. */
  const read = <T>(
    name: string,
    toValue: (value: string) => T | undefined,
    wanted: string,
    known: readonly string[] = [],
  ): T | undefined => {
    const value = text(name);
    if (value === undefined) return undefined;
    const parsed = toValue(value);
    if (parsed === undefined) throw new UsageError(`--${name} ${value} is not ${wanted}${didYouMean(value, known)}`);
    return parsed;
  };
  return {
    positionals,
    text,
    flag: (name) => values[name] === true,
    list(name) {
      const value = values[name];
      return Array.isArray(value) ? value.map(String) : [];
    },
    count: (name, least) => read(name, (value) => toCount(value, least), `a whole number of at least ${least}`),
    number: (name, least) => read(name, (value) => toNumber(value, least), `a number of at least ${least}`),
    duration: (name) => read(name, toMilliseconds, 'a duration such as 90s, 10m or 2h'),
    choice: (name, choices) => read(name, (value) => choices.find((choice) => choice === value), `one of ${choices.join(', ')}`, choices),
  };
}

function toCount(value: string, least: number): number | undefined {
  return /^\d+$/.test(value) && Number(value) >= least && Number.isSafeInteger(Number(value)) ? Number(value) : undefined;
}

function toNumber(value: string, least: number): number | undefined {
  return /^\d+(\.\d+)?$/.test(value) && Number(value) >= least ? Number(value) : undefined;
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

function toMilliseconds(value: string): number | undefined {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(value) ?? [];
  return amount === undefined ? undefined : Number(amount) * (unitMs[unit] ?? 0);
}
