// The tool-call format of Llama 3: the turn is {"name": …, "parameters": …}, or several of them separated by semicolons, or follows
// <|python_tag|>. Other JSON without a tag before it is an answer, not a call.

import { takeReasoning, thinkTags } from './reasoning.ts';
import { addJsonCall, emptyFindings, endOfJson, excerpt, isRecord, parseJson, type ToolCallParser, toParsedTurn } from './tool-calls.ts';

const pythonTag = '<|python_tag|>';

export const llama3JsonParser: ToolCallParser = {
  name: 'llama3-json',
  parse(text) {
    const found = emptyFindings();
    const rest = takeReasoning(text, thinkTags, { found, callOpen: pythonTag });
    const tag = rest.indexOf(pythonTag);
    const isTagged = tag >= 0;
    const body = isTagged ? rest.slice(tag + pythonTag.length) : rest;
    if (!isTagged && !isCall(body)) {
      found.content.push(rest);
      return toParsedTurn(found);
    }
    if (isTagged) found.content.push(rest.slice(0, tag));
    const between = /[\s;]*(?:<\|python_tag\|>)?[\s;]*/y;
    for (let at = 0; ; ) {
      between.lastIndex = at;
      between.exec(body);
      at = between.lastIndex;
      if (at >= body.length) break;
      const end = body[at] === '{' ? endOfJson(body, at) : -1;
      const value = end < 0 ? undefined : parseJson(body.slice(at, end));
      if (!value?.ok) {
        found.malformed.push(`A tool call is not JSON of the form {"name": …, "parameters": …}: ${excerpt(body.slice(at, at + 1001))}`);
        break;
      }
      addJsonCall(found, value.json);
      at = end;
    }
    return toParsedTurn(found);
  },
};

/** Text without a tag is a call if its first JSON object has a name, or starts like one. */
function isCall(text: string): boolean {
  const start = text.search(/\S/);
  if (text[start] !== '{') return false;
  const end = endOfJson(text, start);
  const value = end < 0 ? undefined : parseJson(text.slice(start, end));
  if (value?.ok) return isRecord(value.json) && 'name' in value.json;
  return /^\s*\{\s*"(?:name|type)"\s*:/.test(text.slice(0, 1000));
}
