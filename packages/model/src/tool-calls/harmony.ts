// Formats in which a turn is several messages of different kinds. In gpt-oss's harmony, a message in the analysis channel is reasoning, one
// to=functions.name is a call, and the rest is content; Inkling's messages begin with a mark of their kind.

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

const messageEnd = /<\|(?:end|call|return)\|>/;

export const harmonyParser: ToolCallParser = {
  name: 'harmony',
  ends: ['<|return|>', '<|call|>'],
  parse(text) {
    const found = emptyFindings();
    for (const part of text.split('<|start|>')) readMessage(part, found);
    return toParsedTurn(found);
  },
};

function readMessage(part: string, found: Findings): void {
  const start = part.indexOf('<|message|>');
  if (start < 0) {
    const to = part.includes('<|channel|>') ? part.indexOf('to=functions') : -1;
    if (to >= 0) found.malformed.push(`A call has no arguments, so it was not run: ${excerpt(part.slice(to, to + 300))}`);
    if (!part.includes('<|channel|>') && !/^assistant\b/.test(part)) found.content.push(part.replace(messageEnd, ''));
    return;
  }
  const head = part.slice(0, start);
  const rest = part.slice(start + '<|message|>'.length);
  const end = rest.search(messageEnd);
  const body = end < 0 ? rest : rest.slice(0, end);
  const recipient = /to=(?:functions\.)?([^\s<]{1,200})/.exec(head)?.[1];
  if (recipient !== undefined && recipient !== 'user') readCall(recipient, { body, rest }, found);
  else if (/<\|channel\|>\s*analysis/.test(head)) found.thoughts.push(body);
  else found.content.push(body);
}

/** Reads the JSON up to its own end, so that marks in its strings are no marks. */
function readCall(name: string, { body, rest }: { body: string; rest: string }, found: Findings): void {
  const end = rest.trimStart()[0] === '{' ? endOfJson(rest, 0) : -1;
  const value = parseJson(end > body.length ? rest.slice(0, end) : body);
  if (value.ok) addJsonCall(found, { name, arguments: value.json });
  else found.malformed.push(`The arguments of the call to ${excerpt(name)} are not valid JSON: ${excerpt(body)}`);
}

const inklingMark =
  /<\|(message_model|content_(?:text|thinking|invoke_tool_json|invoke_tool_text|tool_error|model_end_sampling)|end_message)\|>/;
const inklingEnd = /<\|(end_message|content_model_end_sampling)\|>/;
const inklingCall = 'content_invoke_tool_json';

export const inklingParser: ToolCallParser = {
  name: 'inkling',
  reasoning: { open: '<|content_thinking|>', close: '<|end_message|>' },
  parse(text) {
    const found = emptyFindings();
    let [at, kind] = [0, 'content_text'];
    while (at <= text.length) {
      const mark = new RegExp(kind === 'content_thinking' ? inklingEnd : inklingMark, 'g'); // text inside reasoning is never a call
      mark.lastIndex = kind === inklingCall ? readInklingCall(text, at, found) : at;
      const match = mark.exec(text);
      const body = text.slice(at, match?.index);
      if (kind === 'content_thinking') found.thoughts.push(body);
      else if (kind !== inklingCall && kind !== 'message_model') found.content.push(body);
      if (!match) break;
      [at, kind] = [mark.lastIndex, match[1] ?? ''];
    }
    return toParsedTurn(found);
  },
};

/** Returns where the JSON ends, so that marks in its strings are no marks; the rest of the text belongs to JSON without an end. */
function readInklingCall(text: string, from: number, found: Findings): number {
  const start = from + text.slice(from, from + 64).search(/\S|$/);
  const end = text[start] === '{' ? endOfJson(text, start) : -1;
  const value = end < 0 ? undefined : parseJson(text.slice(start, end));
  if (value?.ok && isRecord(value.json))
    addJsonCall(found, { id: value.json.id, name: value.json.name, arguments: value.json.args ?? value.json.arguments ?? {} });
  else found.malformed.push(`A tool call is not valid JSON: ${excerpt(text.slice(from, from + 300))}`);
  return end < 0 ? text.length : end;
}
