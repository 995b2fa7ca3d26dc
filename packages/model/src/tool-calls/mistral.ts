// The tool-call formats of Mistral: [TOOL_CALLS] followed by a JSON list or, in newer models, [TOOL_CALLS]name[ARGS]{…} for each call,
// optionally with [CALL_ID] in between.

import { mistralThinkTags, takeReasoning } from './reasoning.ts';
import {
  addJsonCall,
  emptyFindings,
  endOfJson,
  excerpt,
  type Findings,
  parseJson,
  type ToolCallParser,
  toParsedTurn,
} from './tool-calls.ts';

const callOpen = '[TOOL_CALLS]';

export const mistralParser: ToolCallParser = {
  name: 'mistral',
  reasoning: mistralThinkTags,
  parse(text) {
    const found = emptyFindings();
    const rest = takeReasoning(text, mistralThinkTags, { found, callOpen });
    let at = 0;
    while (at < rest.length) {
      const open = rest.indexOf(callOpen, at);
      found.content.push(rest.slice(at, open < 0 ? undefined : open));
      if (open < 0) break;
      const from = open + callOpen.length;
      const start = from + rest.slice(from, from + 64).search(/\S|$/);
      const end = rest[start] === '[' ? readList(rest, start, found) : readNamed(rest, start, found);
      if (end < 0) break; // the rest belongs to a call without an end
      at = end;
    }
    return toParsedTurn(found);
  },
};

function readList(text: string, start: number, found: Findings): number {
  const end = endOfJson(text, start);
  const value = end < 0 ? undefined : parseJson(text.slice(start, end));
  if (!value?.ok || !Array.isArray(value.json)) {
    found.malformed.push(`What follows ${callOpen} is not a JSON list of calls: ${excerpt(text.slice(start, start + 1001))}`);
    return end;
  }
  for (const item of value.json) addJsonCall(found, item);
  return end;
}

function readNamed(text: string, start: number, found: Findings): number {
  const head = /([^\s[\]{]{1,200})(?:\[CALL_ID\]([^\s[\]{]{1,64}))?(?:\[ARGS\])?\s{0,16}(?=\{)/y;
  head.lastIndex = start;
  const match = head.exec(text);
  const begin = head.lastIndex;
  const end = match ? endOfJson(text, begin) : -1;
  const value = end < 0 ? undefined : parseJson(text.slice(begin, end));
  if (!match || !value?.ok) {
    found.malformed.push(`What follows ${callOpen} is not a name, [ARGS] and a JSON object: ${excerpt(text.slice(start, start + 1001))}`);
    return match ? end : start;
  }
  addJsonCall(found, { name: match[1], id: match[2], arguments: value.json });
  return end;
}
