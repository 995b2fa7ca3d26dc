// The tool-call format of Llama 3: {"name": …, "parameters": …}, alone, several of them, in a list or a fence, after text, or after
// <|python_tag|>. JSON without arguments that does not name a tool is an answer, not a call.

import type { ToolSpec } from '@millrace/protocol';
import { takeReasoning, thinkTags } from './reasoning.ts';
import {
  addJsonCall,
  emptyFindings,
  endOfJson,
  excerpt,
  type Findings,
  isRecord,
  parseJson,
  type ToolCallParser,
  toParsedTurn,
} from './tool-calls.ts';

const pythonTag = '<|python_tag|>';
/** This many brackets that open nothing readable are tried before the rest is taken as text, and this many characters after them. */
const maxTries = 64;
const maxTried = 1 << 20;

export const llama3JsonParser: ToolCallParser = {
  name: 'llama3-json',
  parse(text, tools = []) {
    const found = emptyFindings();
    const rest = takeReasoning(text, thinkTags, { found, callOpen: pythonTag });
    const tag = rest.indexOf(pythonTag);
    if (tag >= 0) {
      found.content.push(rest.slice(0, tag));
      readTagged(rest.slice(tag + pythonTag.length), found);
    } else readUntagged(rest, tools, found);
    return toParsedTurn(found);
  },
};

/** After the tag there are only calls. */
function readTagged(body: string, found: Findings): void {
  const between = /(?:[\s;]|<\|python_tag\|>)*/y;
  for (let at = 0; ; ) {
    between.lastIndex = at;
    between.exec(body);
    at = between.lastIndex;
    if (at >= body.length) return;
    const end = body[at] === '{' ? endOfJson(body, at) : -1;
    const value = end < 0 ? undefined : parseJson(body.slice(at, end));
    if (!value?.ok) {
      reportCut(body, at, found);
      return;
    }
    addJsonCall(found, value.json);
    at = end;
  }
}

function readUntagged(text: string, tools: readonly ToolSpec[], found: Findings): void {
  let [at, searched, tries, tried] = [0, 0, 0, 0];
  for (;;) {
    const start = text.slice(searched).search(/[{[]/) + searched;
    if (start < searched || tries > maxTries || tried > maxTried) break;
    const end = endOfJson(text, start);
    const value = end < 0 ? undefined : parseJson(text.slice(start, end));
    const calls = value?.ok ? toCalls(value.json, tools) : undefined;
    if (calls) {
      found.content.push(
        text
          .slice(at, start)
          .trimEnd()
          .replace(/```(?:json)?$|[;,]$/, ''),
      );
      for (const call of calls) addJsonCall(found, call);
      at = end + (/^\s*```|^[\s;,]+/.exec(text.slice(end, end + 200))?.[0].length ?? 0);
      searched = at;
    } else if (isCutCall(text, start, value?.ok ?? false)) {
      found.content.push(text.slice(at, start));
      reportCut(text, start, found);
      return;
    } else {
      searched = value?.ok ? end : start + 1;
      tries += value?.ok ? 0 : 1;
      tried += value?.ok ? 0 : (end < 0 ? text.length : end) - start;
    }
  }
  found.content.push(text.slice(at));
}

function toCalls(json: unknown, tools: readonly ToolSpec[]): readonly unknown[] | undefined {
  if (!Array.isArray(json)) return isCall(json, tools) ? [json] : undefined;
  return json.length > 0 && json.every((item) => isCall(item, tools)) ? json : undefined;
}

function isCall(json: unknown, tools: readonly ToolSpec[]): boolean {
  if (!isRecord(json) || typeof json.name !== 'string') return false;
  return 'parameters' in json || 'arguments' in json || tools.some(({ name }) => name === json.name);
}

/** JSON that starts like a call and has no end, or is not valid. */
function isCutCall(text: string, start: number, isValid: boolean): boolean {
  if (isValid) return false;
  return /^\[?\s*\{\s*(?:"type"\s*:\s*"function"\s*,\s*)?"(?:name|type)"\s*:/.test(text.slice(start, start + 1000));
}

function reportCut(text: string, at: number, found: Findings): void {
  found.malformed.push(`A tool call is not JSON of the form {"name": …, "parameters": …}: ${excerpt(text.slice(at, at + 1001))}`);
}
