// Chat templates rendered as transformers renders them: Jinja2 with trim_blocks, lstrip_blocks, loop controls, its own tojson,
// raise_exception and strftime_now. docs/decisions/0022 has the comparison with other engines.

import { systemClock } from '@millrace/base/clock';
import { renderBody } from './render.ts';
import { Scope } from './scope.ts';
import { formatTime } from './strftime.ts';
import { parseTemplate } from './syntax/parse.ts';
import { toStr } from './values/python-text.ts';
import { Callable, isMapping, iterate, Namespace, toNumeric, toValue, type Value } from './values/values.ts';

/** A template raised an error itself, with raise_exception. */
export class TemplateRaised extends Error {
  override readonly name = 'TemplateRaised';
}

export class JinjaTemplate {
  readonly #body;

  /** Throws an Error with the line of what cannot be parsed, or with the name of an unknown filter. */
  constructor(source: string) {
    this.#body = parseTemplate(source);
  }

  /** Variables are JavaScript data, or values of the engine. `nowMs` is the time of strftime_now. */
  render(variables: Readonly<Record<string, unknown>>, nowMs = systemClock.now()): string {
    const given = Object.entries(variables).filter(([, value]) => value !== undefined);
    const scope = new Scope(
      new Scope(undefined, globals(nowMs)),
      given.map(([name, value]) => [name, toValue(value)] as const),
    );
    return renderBody(this.#body, scope);
  }
}

function globals(nowMs: number): [string, Value][] {
  return [
    new Callable('range', (args) => range(args)),
    new Callable('namespace', (args, keywords) => new Namespace(new Map([...toEntries(args[0]), ...keywords]))),
    new Callable('dict', (args, keywords) => new Map([...toEntries(args[0]), ...keywords])),
    new Callable('raise_exception', ([message = '']) => {
      throw new TemplateRaised(toStr(message));
    }),
    new Callable('strftime_now', ([format = '']) => formatTime(toStr(format), new Date(nowMs))),
  ].map((callable) => [callable.name, callable]);
}

function toEntries(value: Value | undefined): (readonly [Value, Value])[] {
  if (value === undefined || value === null) return [];
  if (isMapping(value)) return [...value];
  return iterate(value).map((pair) => {
    const [key = null, item = null] = iterate(pair);
    return [key, item] as const;
  });
}

/** As in Jinja2's sandbox. */
const maxRange = 100_000;

function range(args: readonly Value[]): Value {
  const [first = 0, second, step = 1] = args.map((arg) => Number(toNumeric(arg) ?? Number.NaN));
  const [from, to] = second === undefined ? [0, first] : [first, second];
  const length = Math.max(Math.ceil((to - from) / step), 0);
  if (!Number.isFinite(length) || length > maxRange) throw new Error(`range() of ${length} items is too long`);
  return Array.from({ length }, (_, index) => BigInt(from + index * step));
}
