// The hermes form of tool calls: <tool_call>{"name": …, "arguments": …}</tool_call>, with reasoning in <think> tags.
// Reading it never throws: what cannot be read becomes a sentence that can be shown to the model.

import type { ToolCall } from '@millrace/protocol';

export interface ParsedTurn {
  /** What is left beside reasoning and calls. */
  readonly content: string;
  readonly reasoning?: string;
  readonly calls: ToolCall[];
  /** One sentence for each call, or other part, that could not be read. */
  readonly malformed: string[];
}

const callOpen = '<tool_call>';
const callClose = '</tool_call>';
const thinkOpen = '<think>';
const thinkClose = '</think>';

/** A call's arguments may spell the closing tag; this many of them are tried as its end. */
const maxCloseTries = 8;

export function parseHermes(text: string): ParsedTurn {
  const calls: ToolCall[] = [];
  const malformed: string[] = [];
  const thoughts: string[] = [];
  const content: string[] = [];
  let at = skipOrphanThought(text, thoughts);
  while (at < text.length) {
    const open = nextOpen(text, at);
    content.push(text.slice(at, open?.at));
    if (!open) break;
    if (open.tag === thinkOpen) {
      at = readThought(text, open.at + thinkOpen.length, { thoughts, malformed });
    } else {
      at = readCall(text, open.at + callOpen.length, { calls, malformed });
    }
  }
  const reasoning = thoughts.map((thought) => thought.trim()).join('\n');
  return { content: content.join('').trim(), ...(reasoning === '' ? {} : { reasoning }), calls, malformed };
}

/** Where the generation prompt has already opened the thinking, the text begins inside of it. */
function skipOrphanThought(text: string, thoughts: string[]): number {
  const close = text.indexOf(thinkClose);
  const open = nextOpen(text, 0);
  if (close < 0 || (open && open.at < close)) return 0;
  thoughts.push(text.slice(0, close));
  return close + thinkClose.length;
}

function nextOpen(text: string, from: number): { readonly at: number; readonly tag: string } | undefined {
  const open = /<think>|<tool_call>/g;
  open.lastIndex = from;
  const match = open.exec(text);
  return match ? { at: match.index, tag: match[0] } : undefined;
}

function readThought(text: string, from: number, { thoughts, malformed }: { thoughts: string[]; malformed: string[] }): number {
  const close = text.indexOf(thinkClose, from);
  thoughts.push(text.slice(from, close < 0 ? undefined : close));
  if (close >= 0) return close + thinkClose.length;
  malformed.push(`The reasoning was not closed with ${thinkClose}, so nothing after ${thinkOpen} was read.`);
  return text.length;
}

function readCall(text: string, from: number, { calls, malformed }: { calls: ToolCall[]; malformed: string[] }): number {
  const first = text.indexOf(callClose, from);
  if (first < 0) {
    malformed.push(`A ${callOpen} was not closed with ${callClose}, so it was not run.`);
    return text.length;
  }
  let close = first;
  for (let tries = 0; tries < maxCloseTries && close >= 0; tries++) {
    const value = parseJson(text.slice(from, close));
    if (value.ok && (close === first || isRecord(value.json))) {
      const call = toCall(value.json, `call_${calls.length}`);
      if (typeof call === 'string') malformed.push(call);
      else calls.push(call);
      return close + callClose.length;
    }
    close = text.indexOf(callClose, close + callClose.length);
  }
  malformed.push(`The text between ${callOpen} and ${callClose} is not valid JSON: ${excerpt(text.slice(from, first))}`);
  return first + callClose.length;
}

function toCall(json: unknown, id: string): ToolCall | string {
  if (!isRecord(json)) return `A tool call must be a JSON object with "name" and "arguments", not ${excerpt(JSON.stringify(json))}`;
  const { name } = json;
  if (typeof name !== 'string' || name === '') return `A tool call has no "name": ${excerpt(JSON.stringify(json))}`;
  const args = typeof json.arguments === 'string' ? parseJson(json.arguments) : { ok: true as const, json: json.arguments ?? {} };
  if (!args.ok || !isRecord(args.json)) return `The "arguments" of the call to ${excerpt(name)} must be a JSON object.`;
  return { id, name, arguments: args.json };
}

function parseJson(text: string): { readonly ok: true; readonly json: unknown } | { readonly ok: false } {
  try {
    return { ok: true, json: JSON.parse(text) };
  } catch {
    return { ok: false }; // the caller says what was seen
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function excerpt(text: string): string {
  const line = text.trim();
  return line.length <= 200 ? line : `${line.slice(0, 200)}…`;
}
