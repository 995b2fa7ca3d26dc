// The hermes tool-call format: <tool_call>{"name": …, "arguments": …}</tool_call>, with reasoning in <think> tags anywhere.

import { endOfUnopened, readThought, thinkTags } from './reasoning.ts';
import {
  addJsonCall,
  emptyFindings,
  excerpt,
  type Findings,
  isRecord,
  parseJson,
  type ToolCallParser,
  toParsedTurn,
} from './tool-calls.ts';

const callOpen = '<tool_call>';
const callClose = '</tool_call>';

/** The arguments of a call may contain the closing tag; this many closing tags are tried as its end. */
const maxCloseTries = 8;

export const hermesParser: ToolCallParser = {
  name: 'hermes',
  parse(text) {
    const found = emptyFindings();
    let at = 0;
    const unopened = endOfUnopened(text, thinkTags, callOpen);
    if (unopened >= 0) {
      found.thoughts.push(text.slice(0, unopened));
      at = unopened + thinkTags.close.length;
    }
    const open = /<think>|<tool_call>/g;
    while (at < text.length) {
      open.lastIndex = at;
      const match = open.exec(text);
      found.content.push(text.slice(at, match?.index));
      if (!match) break;
      at = match[0] === callOpen ? readCall(text, open.lastIndex, found) : readThought(text, open.lastIndex, { found, tags: thinkTags });
    }
    return toParsedTurn(found);
  },
};

function readCall(text: string, from: number, found: Findings): number {
  const first = text.indexOf(callClose, from);
  if (first < 0) {
    found.malformed.push(`A ${callOpen} was not closed with ${callClose}, so it was not run.`);
    return text.length;
  }
  let close = first;
  for (let tries = 0; tries < maxCloseTries && close >= 0; tries++) {
    const value = parseJson(text.slice(from, close));
    if (value.ok && (close === first || isRecord(value.json))) {
      addJsonCall(found, value.json);
      return close + callClose.length;
    }
    if (text.slice(from, close).trimStart()[0] !== '{') break;
    close = text.indexOf(callClose, close + callClose.length);
  }
  found.malformed.push(`The text between ${callOpen} and ${callClose} is not valid JSON: ${excerpt(text.slice(from, first))}`);
  return first + callClose.length;
}
