// The contract of tool-call parsers, and what all of them share. A parser never throws and takes linear time. A call that it cannot
// parse becomes a sentence that the model reads.

import type { ToolCall, ToolSpec } from '@millrace/protocol';
import { definedOf } from '@millrace/protocol/plain';
import { parseRemembered } from '../jinja/exact-json.ts';

/** Text between them is reasoning. */
export interface ReasoningTags {
  readonly open: string;
  readonly close: string;
}

export interface ParsedTurn {
  /** The text without reasoning and calls. */
  readonly content: string;
  readonly reasoning?: string;
  readonly calls: ToolCall[];
  /** One sentence for each call, or other part, that could not be parsed. */
  readonly malformed: string[];
}

/** The formats that there is a parser for. */
export const toolFormats = [
  'hermes',
  'qwen3-coder',
  'llama3-json',
  'mistral',
  'fenced',
  'pythonic',
  'deepseek-v3',
  'deepseek-v3.1',
  'deepseek-v3.2',
  'deepseek-v4.1',
  'glm',
  'kimi-k2',
  'kimi-k3',
  'minimax-m2',
  'minimax-m3',
  'harmony',
  'gemma4',
  'functiongemma',
  'nemotron',
  'granite',
  'phi4-mini',
  'lfm2',
  'seed-oss',
  'cohere',
  'apertus',
  'tool-calls-list',
  'internlm2',
  'hunyuan-v3',
  'solar',
  'functionary-v3.1',
  'functionary-v3.2',
  'gigachat',
  'minicpm5',
  'muse',
  'ernie45',
  'longcat',
  'plamo3',
  'inkling',
  'k2-horizon',
  'hunyuan-v4',
  'dots',
  'step3',
] as const;
export type ToolFormat = (typeof toolFormats)[number];

export interface ToolCallParser {
  readonly name: ToolFormat;
  /** The tags around reasoning; absent for <think>, and where reasoning has no tags. */
  readonly reasoning?: ReasoningTags;
  /** The control tokens that end a turn, where they are not what the template writes after an earlier turn. */
  readonly ends?: readonly string[];
  /** `tools` give the types of arguments in formats where every value is text. */
  parse(text: string, tools?: readonly ToolSpec[]): ParsedTurn;
}

/** What a parser has found so far, in text order. */
export interface Findings {
  readonly content: string[];
  readonly thoughts: string[];
  readonly calls: ToolCall[];
  readonly malformed: string[];
}

export function emptyFindings(): Findings {
  return { content: [], thoughts: [], calls: [], malformed: [] };
}

export function toParsedTurn({ content, thoughts, calls, malformed }: Findings): ParsedTurn {
  const reasoning = thoughts
    .map((thought) => thought.trim())
    .filter((thought) => thought !== '')
    .join('\n');
  return { content: content.join('').trim(), ...definedOf({ reasoning: reasoning === '' ? undefined : reasoning }), calls, malformed };
}

/** The id of a call whose format has none: nine letters and digits, as the strictest template requires. */
export function toCallId(index: number): string {
  return `call${String(index % 100_000).padStart(5, '0')}`;
}

/** The id of a result that answers no call, such as the message about a malformed one. */
export const noCallId = 'nocall000';

const maxIdLength = 200;

/** Adds one call in JSON, with the id that the model wrote. Models name its arguments `arguments` or `parameters`. */
export function addJsonCall(found: Findings, json: unknown): void {
  const written = isRecord(json) && typeof json.id === 'string' ? json.id : '';
  const isId = written !== '' && written.length <= maxIdLength;
  const call = toCall(json, isId ? written : toCallId(found.calls.length));
  if (typeof call === 'string') found.malformed.push(call);
  else found.calls.push(call);
}

function toCall(json: unknown, id: string): ToolCall | string {
  if (!isRecord(json)) return `A tool call must be a JSON object with "name" and "arguments", not ${excerpt(JSON.stringify(json))}`;
  const { name } = json;
  if (typeof name !== 'string' || name === '') return `A tool call has no "name": ${excerpt(JSON.stringify(json))}`;
  const given = json.arguments ?? json.parameters ?? {};
  const args = typeof given === 'string' ? parseJson(given) : { ok: true as const, json: given };
  if (!args.ok || !isRecord(args.json)) return `The "arguments" of the call to ${excerpt(name)} must be a JSON object.`;
  return { id, name, arguments: args.json };
}

/** Deeper values would overflow the stack when they are serialised. */
const maxDepth = 64;

/** Where the JSON object or list that starts at `from` ends; -1 if it has no end or is nested too deeply. Looks only at brackets and strings. */
export function endOfJson(text: string, from: number): number {
  let depth = 0;
  const sign = /["[\]{}]/g;
  for (sign.lastIndex = from; ; ) {
    const match = sign.exec(text);
    if (!match) return -1;
    if (match[0] === '"') {
      sign.lastIndex = endOfString(text, sign.lastIndex);
      if (sign.lastIndex === 0) return -1;
    } else if (match[0] === '{' || match[0] === '[') {
      if (++depth > maxDepth) return -1;
    } else if (--depth <= 0) {
      return sign.lastIndex;
    }
  }
}

/** The position after the closing quote; 0 if there is none. */
function endOfString(text: string, from: number): number {
  for (let at = text.indexOf('"', from); at >= 0; at = text.indexOf('"', at + 1)) {
    let escapes = 0;
    while (text[at - 1 - escapes] === '\\' && at - 1 - escapes >= from) escapes += 1;
    if (escapes % 2 === 0) return at + 1;
  }
  return 0;
}

/** Text that does not end with its last bracket is refused without the cost of an exception. */
export function parseJson(text: string): { readonly ok: true; readonly json: unknown } | { readonly ok: false } {
  const trimmed = text.trim();
  if (trimmed === '' || trimmed[0] === '<') return { ok: false };
  if (/^[[{]/.test(trimmed) && endOfJson(trimmed, 0) !== trimmed.length) return { ok: false };
  try {
    return { ok: true, json: parseRemembered(text) };
  } catch {
    return { ok: false }; // the caller describes the text
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** More calls than any turn has. */
const mostCalls = 1000;
/** More values in the arguments of its calls than any turn has; rendering and keeping more would block the event loop. */
const mostValues = 20_000;

/** The first calls of a turn that has too many; the model reads why. */
export function capCalls({ calls, malformed, ...rest }: ParsedTurn): ParsedTurn {
  let [kept, values] = [0, 0];
  for (const call of calls.slice(0, mostCalls)) {
    values += countValues(call.arguments, mostValues - values);
    if (values > mostValues) break;
    kept += 1;
  }
  if (kept === calls.length && malformed.length <= mostCalls) return { ...rest, calls, malformed };
  const why = `Only the first ${kept} tool calls of the turn were read: it may have ${mostCalls} calls with ${mostValues} values in their arguments.`;
  return { ...rest, calls: calls.slice(0, kept), malformed: [...malformed.slice(0, mostCalls - 1), why] };
}

/** Up to one more than `most`. */
function countValues(value: unknown, most: number): number {
  if (typeof value !== 'object' || value === null) return 1;
  let count = 1;
  for (const item of Object.values(value)) {
    if (count > most) break;
    count += countValues(item, most - count);
  }
  return count;
}

/** Each frame becomes a line break, together with up to `most` characters of space on both sides. */
export function dropFrames(text: string, frames: RegExp, most: number): string {
  const isSpace = (at: number) => at >= 0 && at < text.length && text.charAt(at).trim() === '';
  const pieces: string[] = [];
  let at = 0;
  for (const { index, 0: frame } of text.matchAll(frames)) {
    let [start, end] = [index, index + frame.length];
    while (start > at && index - start < most && isSpace(start - 1)) start -= 1;
    while (end - index - frame.length < most && isSpace(end)) end += 1;
    pieces.push(text.slice(at, start));
    at = end;
  }
  return [...pieces, text.slice(at)].join('\n');
}

/** Safe for any name, including `__proto__`. */
export function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
}

export function excerpt(text: string): string {
  const start = text.slice(0, 1000).trim();
  return start.length <= 200 && text.length <= 1000 ? start : `${start.slice(0, 200)}…`;
}
