// The families whose arguments are literals: Python calls in a list (Llama 3.2 and 4, LFM2, Olmo 3, Gemma 3), and Gemma 4's
// call:name{key:value}.

import { LiteralError, LiteralReader, type LiteralSyntax, pythonSyntax } from './literal-reader.ts';
import { takeReasoning, thinkTags } from './reasoning.ts';
import {
  emptyFindings,
  excerpt,
  type Findings,
  type ReasoningTags,
  type ToolCallParser,
  type ToolFormat,
  toCallId,
  toParsedTurn,
} from './tool-calls.ts';

const callName = /[A-Za-z_][\w.-]{0,199}/y;

interface Marks {
  readonly open: string;
  readonly close: string;
}

/** Calls between marks; without marks, the whole turn must be a list of calls. */
function makePythonicParser(name: ToolFormat, marks: readonly Marks[]): ToolCallParser {
  return {
    name,
    parse(text) {
      const found = emptyFindings();
      const rest = takeReasoning(text, thinkTags, { found, callOpen: marks[0]?.open ?? '[' });
      const mark = marks.find(({ open }) => rest.includes(open));
      if (mark) readMarked(rest, mark, found);
      else readUnmarked(rest, found);
      return toParsedTurn(found);
    },
  };
}

/** A list of calls at the start of the turn, or at its end. */
function readUnmarked(text: string, found: Findings): void {
  const start = text.search(/\[\s*[A-Za-z_][\w.-]*\(/);
  const isFirst = start >= 0 && text.slice(0, start).trim() === '';
  const tried = emptyFindings();
  const end = start < 0 ? 0 : readCalls(text, start, tried);
  const isLast = tried.malformed.length === 0 && text.slice(end).trim() === '';
  if (start < 0 || !(isFirst || isLast)) {
    found.content.push(text);
    return;
  }
  found.content.push(text.slice(0, start), text.slice(end));
  found.calls.push(...tried.calls);
  found.malformed.push(...tried.malformed);
}

function readMarked(text: string, { open, close }: Marks, found: Findings): void {
  let at = 0;
  for (;;) {
    const start = text.indexOf(open, at);
    found.content.push(text.slice(at, start < 0 ? undefined : start));
    if (start < 0) return;
    const count = found.calls.length + found.malformed.length;
    const read = readCalls(text, start + open.length, found);
    if (found.calls.length + found.malformed.length === count)
      found.malformed.push(`A ${open} has no readable call after it, so it was not run.`);
    const end = text.indexOf(close, read);
    at = end < 0 ? (found.malformed.length > 0 ? text.length : read) : end + close.length;
  }
}

/** Reads `[f(a=1), g()]`, or calls on lines of their own; returns where it stopped. */
function readCalls(text: string, from: number, found: Findings): number {
  const reader = new LiteralReader(text, from, pythonSyntax);
  const count = found.calls.length;
  try {
    const isList = reader.take('[');
    while (!(isList && reader.take(']'))) {
      const name = reader.match(callName);
      if (name === undefined && !isList) break;
      if (name === undefined) throw new LiteralError('expected a call');
      reader.expect('(');
      found.calls.push({ id: toCallId(found.calls.length), name, arguments: readKeywords(reader) });
      reader.take(',');
    }
    return reader.at;
  } catch (error) {
    if (!(error instanceof LiteralError)) throw error;
    found.calls.length = count;
    found.malformed.push(`A tool call is not of the form [name(key=value)]: ${error.message}: ${excerpt(text.slice(from, from + 300))}`);
    return text.length;
  }
}

/** `key=value` up to the closing parenthesis. */
function readKeywords(reader: LiteralReader): Record<string, unknown> {
  const args: [string, unknown][] = [];
  while (!reader.take(')')) {
    const key = reader.match(/[A-Za-z_]\w{0,199}/y);
    if (key === undefined) throw new LiteralError('expected a keyword argument');
    reader.expect('=');
    args.push([key, reader.value()]);
    if (!reader.take(',')) {
      reader.expect(')');
      break;
    }
  }
  return Object.fromEntries(args);
}

interface BraceMarks extends Marks {
  readonly quote: string;
  readonly reasoning: ReasoningTags;
}

/** `call:name{key:value}` between marks, with strings in quotes of the family's own. */
function makeBraceParser(name: ToolFormat, { open, close, quote, reasoning }: BraceMarks): ToolCallParser {
  const syntax: LiteralSyntax = { quotes: [quote], escapes: false, colon: ':' };
  return {
    name,
    reasoning,
    parse(text) {
      const found = emptyFindings();
      const rest = takeReasoning(text, reasoning, { found, callOpen: open });
      for (let at = 0; ; ) {
        const start = rest.indexOf(open, at);
        found.content.push(rest.slice(at, start < 0 ? undefined : start));
        if (start < 0) break;
        const reader = new LiteralReader(rest, start + open.length, syntax);
        at = readBraceCall(reader, { text: rest, close, found });
      }
      return toParsedTurn(found);
    },
  };
}

function readBraceCall(reader: LiteralReader, { text, close, found }: { text: string; close: string; found: Findings }): number {
  const from = reader.at;
  try {
    reader.take('call:');
    const name = reader.match(callName);
    if (name === undefined) throw new LiteralError('expected call: and a name');
    reader.expect('{');
    const args = reader.entries('}');
    const isLast = text.slice(reader.at).trim() === ''; // only the closing mark is missing
    if (!isLast) reader.expect(close);
    found.calls.push({ id: toCallId(found.calls.length), name, arguments: args });
    return reader.at;
  } catch (error) {
    if (!(error instanceof LiteralError)) throw error;
    found.malformed.push(`A tool call is not of the form call:name{key:value}: ${error.message}: ${excerpt(text.slice(from, from + 300))}`);
    const end = text.indexOf(close, from);
    return end < 0 ? text.length : end + close.length;
  }
}

export const literalParsers = [
  makePythonicParser('pythonic', [
    { open: '<|python_start|>', close: '<|python_end|>' },
    { open: '<function_calls>', close: '</function_calls>' },
  ]),
  makePythonicParser('lfm2', [{ open: '<|tool_call_start|>', close: '<|tool_call_end|>' }]),
  makeBraceParser('gemma4', {
    open: '<|tool_call>',
    close: '<tool_call|>',
    quote: '<|"|>',
    reasoning: { open: '<|channel>thought', close: '<channel|>' },
  }),
  makeBraceParser('functiongemma', {
    open: '<start_function_call>',
    close: '<end_function_call>',
    quote: '<escape>',
    reasoning: thinkTags,
  }),
] as const;
