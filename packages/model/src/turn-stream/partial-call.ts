// What is known of a call before it is complete: its text is completed as the format would, and read by the format's own parser. Only a text
// argument at the top is shown before its end, because nothing that follows can change what it begins with.

import { isDeepStrictEqual } from 'node:util';
import type { ToolCall, ToolSpec } from '@millrace/protocol';
import type { ParsedTurn } from '../tool-calls/tool-calls.ts';
import { typesOf } from '../tool-calls/typed-values.ts';
import type { CallMarks } from './call-marks.ts';

/** The calls in a text that has not ended. `partial` may still grow. */
interface FoundCalls {
  readonly complete: readonly ToolCall[];
  readonly partial?: PartialCall;
}

interface PartialCall {
  readonly name: string;
  /** The start of its arguments as JSON, up to inside a text. */
  readonly json: string;
}

interface CallReader {
  readonly marks: CallMarks;
  readonly tools: readonly ToolSpec[];
  parse(text: string): ParsedTurn;
}

export function findCalls(text: string, reader: CallReader): FoundCalls {
  const { calls, malformed } = reader.parse(text);
  if (malformed.length === 0) return { complete: calls };
  for (const { tail, openText } of completionsOf(text, reader.marks)) {
    const read = reader.parse(text + tail);
    const last = read.calls.at(-1);
    if (read.malformed.length > 0 || !last) continue;
    const json =
      openText !== undefined && !endsWith(last, openText) ? undefined : toPartialJson(last, openText !== undefined, reader.tools);
    return { complete: read.calls.slice(0, -1), ...(json !== undefined && { partial: { name: last.name, json } }) };
  }
  return { complete: [] };
}

interface CallTail {
  readonly tail: string;
  /** The text that is cut, where its end is known exactly. */
  readonly openText?: string;
}

function completionsOf(text: string, { quotes, tails = [] }: CallMarks): CallTail[] {
  const own = quotes && closeBrackets(text, quotes);
  return [...(own ? [own] : []), ...tails.map((tail) => ({ tail }))];
}

/** What closes an open string and all open brackets; undefined if no string is open, or inside an escape. */
function closeBrackets(text: string, quotes: string): CallTail | undefined {
  const closers: string[] = [];
  let [quote, from] = ['', 0];
  for (let at = 0; at < text.length; at += 1) {
    const sign = text.charAt(at);
    if (quote !== '') {
      if (sign === '\\') at += 1;
      else if (sign === quote) quote = '';
      if (at >= text.length) return undefined;
    } else if (quotes.includes(sign)) [quote, from] = [sign, at + 1];
    else if (sign in pairs) closers.push(pairs[sign] ?? '');
    else if (sign === closers.at(-1)) closers.pop();
  }
  if (quote === '' || /\\u[0-9a-fA-F]{0,3}$/.test(text.slice(from))) return undefined;
  const openText = quotes === '"' ? unquote(text.slice(from)) : undefined;
  return quotes === '"' && openText === undefined
    ? undefined
    : { tail: quote + closers.reverse().join(''), ...(openText !== undefined && { openText }) };
}

const pairs: Readonly<Record<string, string>> = { '{': '}', '[': ']', '(': ')' };

function unquote(raw: string): string | undefined {
  try {
    return JSON.parse(`"${raw}"`);
  } catch {
    return undefined; // a line break in a string: not JSON
  }
}

/** Whether the text that is cut is the last argument, and not the name or something in an argument. */
function endsWith({ arguments: args }: ToolCall, openText: string): boolean {
  return Object.values(args).at(-1) === openText;
}

/** Undefined where the last argument may become something else. */
function toPartialJson({ name, arguments: args }: ToolCall, isExact: boolean, tools: readonly ToolSpec[]): string | undefined {
  const entries = Object.entries(args);
  const [key, value] = entries.pop() ?? [];
  if (key === undefined || typeof value !== 'string' || [key, ...entries.map(([one]) => one)].some((one) => /^\d+$/.test(one)))
    return undefined;
  const types = typesOf(tools, name, key);
  if (types !== undefined && !(types.has('string') && (isExact || types.size === 1))) return undefined;
  const shown = isExact ? value.replace(/[\ud800-\udbff]$/, '') : holdEnd(value);
  if (shown === '') return undefined;
  const before = entries.map(([one, given]) => `${JSON.stringify(one)}:${JSON.stringify(given)},`).join('');
  return `{${before}${JSON.stringify(key)}:${JSON.stringify(shown).slice(0, -1)}`;
}

/** The longest mark that ends an argument is shorter. */
const markLength = 40;

/** Without what may be the start of the mark that ends it, and white space that may belong to the mark. */
function holdEnd(value: string): string {
  const near = value.slice(-markLength).search(/[<\]`\\'"]/);
  const end = near < 0 ? value.length : Math.max(0, value.length - markLength) + near;
  return value
    .slice(0, end)
    .trimEnd()
    .replace(/[\ud800-\udbff]$/, '');
}

/** The rest of the arguments of a call that was shown in part. What was shown wrongly is said again: the last one of equal keys counts. */
export function completeJson(shown: string, args: Readonly<Record<string, unknown>>): string {
  const whole = JSON.stringify(args);
  if (whole.startsWith(shown)) return whole.slice(shown.length);
  const known: Record<string, unknown> = JSON.parse(`${shown}"}`);
  const wrong = Object.entries(args).filter(([key, value]) => !(Object.hasOwn(known, key) && isDeepStrictEqual(known[key], value)));
  return `"${wrong.map(([key, value]) => `,${JSON.stringify(key)}:${JSON.stringify(value)}`).join('')}}`;
}
