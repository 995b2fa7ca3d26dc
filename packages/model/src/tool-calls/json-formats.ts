// The families whose calls are JSON between marks of their own: one object, a list, or a name followed by the arguments.

import { definedOf } from '@millrace/protocol/plain';
import { takeReasoning, thinkTags } from './reasoning.ts';
import {
  addJsonCall,
  dropFrames,
  emptyFindings,
  endOfJson,
  excerpt,
  type Findings,
  isRecord,
  parseJson,
  type ReasoningTags,
  type ToolCallParser,
  type ToolFormat,
  toParsedTurn,
} from './tool-calls.ts';

interface MarkedFormat {
  /** Finds what opens a call or a list of calls. A group `name` is the name, and the JSON that follows then the arguments; `id` is its id. */
  readonly open: RegExp;
  /** What may follow the JSON and belongs to the format. */
  readonly close: RegExp;
  /** The mark before all calls, after which there must be one. */
  readonly section?: string;
  /** Marks around calls and text, which are no content. */
  readonly wrappers: readonly string[];
  /** The JSON of one call as an object with `name` and `arguments`. */
  readonly toCall?: (json: unknown) => unknown;
  readonly reasoning?: ReasoningTags;
}

function makeMarkedParser(name: ToolFormat, format: MarkedFormat): ToolCallParser {
  const wrapper = new RegExp(format.wrappers.map((mark) => RegExp.escape(mark)).join('|') || '(?!)', 'g');
  return {
    name,
    ...definedOf({ reasoning: format.reasoning }),
    parse(text) {
      const found = emptyFindings();
      const open = new RegExp(format.open, 'g');
      const rest = takeReasoning(text, format.reasoning ?? thinkTags, { found, callOpen: format.section ?? literalOf(format.open) });
      let at = 0;
      let opened = false;
      while (at < rest.length) {
        open.lastIndex = at;
        const match = open.exec(rest);
        const before = rest.slice(at, match?.index);
        opened ||= format.section !== undefined && before.includes(format.section);
        found.content.push(dropFrames(before, wrapper, 32));
        if (!match) break;
        at = readJson(rest, { from: open.lastIndex, ...definedOf({ name: match.groups?.name, id: match.groups?.id }) }, { found, format });
      }
      if (opened && found.calls.length + found.malformed.length === 0)
        found.malformed.push(`A ${format.section} has no readable call in it, so it was not run.`);
      return toParsedTurn(found);
    },
  };
}

function literalOf({ source }: RegExp): string {
  return /^[\w<>|]+/.exec(source.replaceAll('\\', ''))?.[0] ?? '<tool_call>';
}

/** What stands before the arguments of a call. */
interface CallHead {
  readonly name?: string;
  readonly id?: string;
}

interface MarkedReading {
  readonly found: Findings;
  readonly format: MarkedFormat;
}

/** Reads one JSON value after another, up to something else. */
function readJson(text: string, { from, ...head }: CallHead & { from: number }, { found, format }: MarkedReading): number {
  const between = /[\s,;]*(?=[[{])/y;
  let at = from;
  for (let count = 0; ; count++) {
    between.lastIndex = at;
    if (!between.test(text)) return count === 0 ? report(text, from, found) : skip(text, at, format.close);
    const start = between.lastIndex;
    const end = endOfJson(text, start);
    const value = end < 0 ? undefined : parseJson(text.slice(start, end));
    if (!value?.ok) {
      report(text, start, found);
      return end < 0 ? text.length : end;
    }
    add(value.json, head, { found, format });
    at = end;
    if (head.name !== undefined) return skip(text, at, format.close);
  }
}

function add(json: unknown, { name, id }: CallHead, { found, format }: MarkedReading): void {
  if (name !== undefined) addJsonCall(found, { name, id: id?.trim(), arguments: json });
  else for (const item of Array.isArray(json) ? json : [json]) addJsonCall(found, format.toCall ? format.toCall(item) : unwrap(item));
}

/** Some models wrap a call as the API does: {"id": …, "type": "function", "function": {…}}. */
function unwrap(json: unknown): unknown {
  return isRecord(json) && isRecord(json.function) && json.name === undefined ? { id: json.id, ...json.function } : json;
}

function report(text: string, at: number, found: Findings): number {
  found.malformed.push(`A tool call is not valid JSON: ${excerpt(text.slice(at, at + 300))}`);
  return at;
}

function skip(text: string, at: number, close: RegExp): number {
  const end = new RegExp(`\\s*(?:${close.source})`, 'y');
  end.lastIndex = at;
  return end.test(text) ? end.lastIndex : at;
}

const cohereCall = (json: unknown) =>
  isRecord(json)
    ? { id: json.tool_call_id ?? json.id, name: json.tool_name ?? json.name, arguments: json.parameters ?? json.arguments ?? {} }
    : json;
const namedCall = (json: unknown) => {
  const [entry] = isRecord(json) ? Object.entries(json) : [];
  return isRecord(json) && json.name === undefined && entry ? { name: entry[0], arguments: entry[1] } : json;
};

/** Each part is `>>>recipient`, a newline and its text; the recipient of plain text is `all`. The generation prompt has the first `>>>`. */
const recipients = makeMarkedParser('functionary-v3.2', {
  open: />>>(?<name>[^\s<>{}]{1,200})\n(?=\s*\{)/,
  close: /(?!)/,
  wrappers: ['>>>all'],
});
const functionary: ToolCallParser = {
  ...recipients,
  parse: (text, tools) => recipients.parse(/^\s*(?:all\n|[\w.-]{1,200}\n\s*\{)/.test(text) ? `>>>${text.trimStart()}` : text, tools),
};

export const jsonParsers = [
  makeMarkedParser('kimi-k2', {
    open: /<\|tool_call_begin\|>\s*(?<id>(?:functions\.)?(?<name>[^\s<>:]{1,200})(?::\d+)?)\s*<\|tool_call_argument_begin\|>/,
    close: /<\|tool_call_end\|>/,
    section: '<|tool_calls_section_begin|>',
    wrappers: ['<|tool_calls_section_begin|>', '<|tool_calls_section_end|>'],
  }),
  makeMarkedParser('deepseek-v3.1', {
    open: /<｜tool▁call▁begin｜>\s*(?<name>[^\s<>｜]{1,200})<｜tool▁sep｜>(?=\s*\{)/,
    close: /<｜tool▁call▁end｜>/,
    section: '<｜tool▁calls▁begin｜>',
    wrappers: ['<｜tool▁calls▁begin｜>', '<｜tool▁calls▁end｜>'],
  }),
  makeMarkedParser('deepseek-v3', {
    open: /<｜tool▁call▁begin｜>\s*function<｜tool▁sep｜>(?<name>[^\s<>｜]{1,200})\s*(?:```json\s*)?(?=\{)/,
    close: /(?:```\s*)?<｜tool▁call▁end｜>/,
    section: '<｜tool▁calls▁begin｜>',
    wrappers: ['<｜tool▁calls▁begin｜>', '<｜tool▁calls▁end｜>'],
  }),
  makeMarkedParser('plamo3', {
    open: /<\|plamo:begin_tool_name:plamo\|>(?<name>[^<]{1,200})<\|plamo:end_tool_name:plamo\|>\s*<\|plamo:begin_tool_arguments:plamo\|>(?:<\|plamo:constrain\|>json<\|plamo:msg\|>)?/,
    close: /<\|plamo:end_tool_arguments:plamo\|>/,
    section: '<|plamo:begin_tool_requests:plamo|>',
    wrappers: ['begin_tool_requests', 'end_tool_requests', 'begin_tool_request', 'end_tool_request'].map((tag) => `<|plamo:${tag}:plamo|>`),
    reasoning: { open: '<|plamo:begin_think:plamo|>', close: '<|plamo:end_think:plamo|>' },
  }),
  makeMarkedParser('solar', {
    open: /<\|tool_call:begin\|>(?<id>[^<]{0,200})<\|tool_call:name\|>(?<name>[^<]{1,200})<\|tool_call:args\|>/,
    close: /<\|tool_call:end\|>/,
    section: '<|tool_calls|>',
    wrappers: ['<|tool_calls|>', '<|calls|>', '<|begin|>assistant', '<|content|>'],
    reasoning: { open: '<|think|>', close: '<|end|>' },
  }),
  makeMarkedParser('functionary-v3.1', {
    open: /<function=(?<name>[^\s<>"'=]{1,200})>(?=\s*\{)/,
    close: /<\/function>/,
    wrappers: [],
  }),
  functionary,
  makeMarkedParser('cohere', {
    open: /<\|START_ACTION\|>|Action:\s*```json/,
    close: /<\|END_ACTION\|>|```/,
    wrappers: ['<|START_RESPONSE|>', '<|END_RESPONSE|>', '<|START_TEXT|>', '<|END_TEXT|>'],
    toCall: cohereCall,
    reasoning: { open: '<|START_THINKING|>', close: '<|END_THINKING|>' },
  }),
  makeMarkedParser('apertus', {
    open: /<\|tools_prefix\|>/,
    close: /<\|tools_suffix\|>/,
    wrappers: ['<|inner_prefix|>', '<|inner_suffix|>'],
    toCall: namedCall,
    reasoning: { open: '<|inner_prefix|>', close: '<|inner_suffix|>' },
  }),
  makeMarkedParser('tool-calls-list', { open: /<tool_calls>/, close: /<\/tool_calls>/, wrappers: ['<answer>', '</answer>'] }),
  makeMarkedParser('nemotron', { open: /<TOOLCALL>/, close: /<\/TOOLCALL>/, wrappers: [] }),
  makeMarkedParser('internlm2', { open: /<\|action_start\|>\s*<\|plugin\|>/, close: /<\|action_end\|>/, wrappers: [] }),
  makeMarkedParser('granite', { open: /<\|tool_call\|>|<function_call>/, close: /<\/function_call>/, wrappers: [] }),
  makeMarkedParser('gigachat', { open: /<\|function_call\|>|function call<\|role_sep\|>/, close: /(?!)/, wrappers: ['<|message_sep|>'] }),
  makeMarkedParser('phi4-mini', { open: /functools(?=\s*\[)/, close: /(?!)/, wrappers: [] }),
] as const;
