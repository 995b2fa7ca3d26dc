// The hermes tool-call format, <tool_call>{"name": …, "arguments": …}</tool_call>, with reasoning in <think> tags anywhere, and the formats
// that differ from it in their tags only.

import { definedOf } from '@millrace/protocol/plain';
import { endOfUnopened, readThought, thinkTags } from './reasoning.ts';
import {
  addJsonCall,
  emptyFindings,
  excerpt,
  type Findings,
  isRecord,
  parseJson,
  type ReasoningTags,
  type ToolCallParser,
  type ToolFormat,
  toParsedTurn,
} from './tool-calls.ts';

/** The arguments of a call may contain the closing tag; this many closing tags are tried as its end. */
const maxCloseTries = 8;

export interface HermesTags {
  readonly open: string;
  readonly close: string;
  readonly reasoning?: ReasoningTags;
  /** Tags around text, which are no content. */
  readonly wrappers?: readonly string[];
}

export function makeHermesParser(name: ToolFormat, { open: callOpen, close, reasoning, wrappers = [] }: HermesTags): ToolCallParser {
  const tags = reasoning ?? thinkTags;
  const wrapper = new RegExp(wrappers.map((tag) => RegExp.escape(tag)).join('|') || '(?!)', 'g');
  return {
    name,
    ...definedOf({ reasoning }),
    parse(text) {
      const found = emptyFindings();
      let at = 0;
      const unopened = endOfUnopened(text, tags, callOpen);
      if (unopened >= 0) {
        found.thoughts.push(text.slice(0, unopened));
        at = unopened + tags.close.length;
      }
      const open = new RegExp(`${RegExp.escape(tags.open)}|${RegExp.escape(callOpen)}`, 'g');
      while (at < text.length) {
        open.lastIndex = at;
        const match = open.exec(text);
        found.content.push(text.slice(at, match?.index).replace(wrapper, ''));
        if (!match) break;
        const from = open.lastIndex;
        at = match[0] === callOpen ? readCall(text, from, { found, open: callOpen, close }) : readThought(text, from, { found, tags });
      }
      return toParsedTurn(found);
    },
  };
}

interface CallReading {
  readonly found: Findings;
  readonly open: string;
  readonly close: string;
}

function readCall(text: string, from: number, { found, open, close: closeTag }: CallReading): number {
  const first = text.indexOf(closeTag, from);
  if (first < 0) return readLast(text, from, { found, open, close: closeTag });
  let close = first;
  for (let tries = 0; tries < maxCloseTries && close >= 0; tries++) {
    const value = parseJson(text.slice(from, close));
    if (value.ok && (close === first || isRecord(value.json))) {
      addJsonCall(found, value.json);
      return close + closeTag.length;
    }
    if (text.slice(from, close).trimStart()[0] !== '{') break;
    close = text.indexOf(closeTag, close + closeTag.length);
  }
  found.malformed.push(`The text between ${open} and ${closeTag} is not valid JSON: ${excerpt(text.slice(from, first))}`);
  return first + closeTag.length;
}

/** A last call whose JSON is complete is a call without its closing tag: nothing that follows could change it. */
function readLast(text: string, from: number, { found, open, close }: CallReading): number {
  const value = parseJson(text.slice(from));
  if (value.ok && isRecord(value.json)) addJsonCall(found, value.json);
  else found.malformed.push(`A ${open} was not closed with ${close}, so it was not run.`);
  return text.length;
}

export const hermesParser = makeHermesParser('hermes', { open: '<tool_call>', close: '</tool_call>' });

export const hermesLikeParsers = [
  makeHermesParser('longcat', {
    open: '<longcat_tool_call>',
    close: '</longcat_tool_call>',
    reasoning: { open: '<longcat_think>', close: '</longcat_think>' },
  }),
  makeHermesParser('ernie45', { open: '<tool_call>', close: '</tool_call>', wrappers: ['<response>', '</response>'] }),
] as const;
