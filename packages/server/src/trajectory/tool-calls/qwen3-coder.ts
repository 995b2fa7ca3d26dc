// The tool-call format of Qwen3-Coder: <tool_call><function=name><parameter=x>text</parameter></function></tool_call>. Values are
// text; the tool's schema says which of them are numbers, booleans or JSON.

import type { ToolSpec } from '@millrace/protocol';
import { takeReasoning, thinkTags } from './reasoning.ts';
import { emptyFindings, excerpt, type Findings, isRecord, parseJson, type ToolCallParser, toCallId, toParsedTurn } from './tool-calls.ts';

const functionOpen = '<function=';
const functionClose = '</function>';

export const qwen3CoderParser: ToolCallParser = {
  name: 'qwen3-coder',
  parse(text, tools = []) {
    const found = emptyFindings();
    const rest = takeReasoning(text, thinkTags, { found, callOpen: functionOpen });
    let at = 0;
    while (at < rest.length) {
      const open = rest.indexOf(functionOpen, at);
      found.content.push(rest.slice(at, open < 0 ? undefined : open).replace(/<tool_call>\s{0,16}$|^\s{0,16}<\/tool_call>/g, ''));
      if (open < 0) break;
      at = readFunction(rest, open + functionOpen.length, { found, tools });
    }
    if (found.calls.length + found.malformed.length === 0 && rest.includes('<tool_call>'))
      found.malformed.push(`A <tool_call> has no ${functionOpen}name> in it, so it was not run.`);
    return toParsedTurn(found);
  },
};

interface Reading {
  readonly found: Findings;
  readonly tools: readonly ToolSpec[];
}

/** Reads one function and its parameters in order, so that a value may contain any tag except its own closing tag. */
function readFunction(text: string, from: number, { found, tools }: Reading): number {
  const head = /[ "']{0,4}([^\s<>"'=]{1,200})[ "']{0,4}>/y;
  head.lastIndex = from;
  const name = head.exec(text)?.[1];
  if (name === undefined) {
    found.malformed.push(`A call has no readable name: ${functionOpen}${excerpt(text.slice(from, from + 100))}`);
    return from;
  }
  const args: Record<string, unknown> = {};
  const next = /\s*(?:<parameter=([^>\n]{1,200})>|(<\/function>))/y;
  for (next.lastIndex = head.lastIndex; ; ) {
    const start = next.lastIndex;
    const match = next.exec(text);
    if (match?.[2]) break;
    const close = match ? text.indexOf('</parameter>', next.lastIndex) : -1;
    if (!match?.[1] || close < 0) {
      const seen = excerpt(text.slice(start, start + 300));
      found.malformed.push(`The call to ${name} was not closed with ${functionClose}, or a parameter not with </parameter>: ${seen}`);
      return match ? text.length : start;
    }
    setOwn(args, match[1].trim(), toValue(text.slice(next.lastIndex, close), typeOf(tools, name, match[1].trim())));
    next.lastIndex = close + '</parameter>'.length;
  }
  found.calls.push({ id: toCallId(found.calls.length), name, arguments: args });
  return next.lastIndex;
}

function typeOf(tools: readonly ToolSpec[], name: string, parameter: string): unknown {
  const properties = tools.find((tool) => tool.name === name)?.parameters.properties;
  const schema = isRecord(properties) && Object.hasOwn(properties, parameter) ? properties[parameter] : undefined;
  return isRecord(schema) ? schema.type : undefined;
}

/** The template puts a newline before and after a value. A value that does not match its type stays text, and the tool reports it. */
function toValue(raw: string, type: unknown): unknown {
  const text = raw.replace(/^\n/, '').replace(/\n$/, '');
  if (type === undefined || type === 'string') return text;
  const value = parseJson(type === 'boolean' ? text.trim().toLowerCase() : text);
  return value.ok ? value.json : text;
}

/** Safe for any name, including `__proto__`. */
function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
}
