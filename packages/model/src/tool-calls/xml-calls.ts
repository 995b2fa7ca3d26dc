// Formats that write a call as elements with one element for each argument. They differ in their tags only; values are text, read up to
// their own closing tag.

import type { ToolSpec } from '@millrace/protocol';
import { definedOf } from '@millrace/protocol/plain';
import { takeReasoning, thinkTags } from './reasoning.ts';
import {
  dropFrames,
  emptyFindings,
  excerpt,
  type Findings,
  parseJson,
  type ReasoningTags,
  setOwn,
  type ToolCallParser,
  type ToolFormat,
  toCallId,
  toParsedTurn,
} from './tool-calls.ts';
import { toTyped, typesOf } from './typed-values.ts';

export interface XmlTags {
  /** Finds the start of a call; its first group is the name. */
  readonly call: RegExp;
  readonly callClose: string;
  /** The start of an argument, after white space: its first group is the key, and a second one says whether the value is text (`true`, `string`) or JSON. */
  readonly argument: RegExp;
  readonly argumentClose: string | ((key: string) => string);
  /** Tags around calls and text, which are no content. */
  readonly wrappers: readonly string[];
  /** What shows that a call was meant; the first wrapper by default. */
  readonly openers?: readonly string[];
  /** Other text of the format that is no content. */
  readonly frame?: RegExp;
  readonly reasoning?: ReasoningTags;
  /** Whether a newline after the opening and before the closing tag belongs to the tags. */
  readonly hasLines?: boolean;
  /** Reads a value that consists of elements; undefined if it does not. */
  readonly readNested?: (text: string) => unknown;
  /** Whether a value may be in <![CDATA[…]]>. */
  readonly hasCdata?: boolean;
}

export function makeXmlParser(name: ToolFormat, tags: XmlTags): ToolCallParser {
  const frames = [...tags.wrappers.map((tag) => RegExp.escape(tag)), ...(tags.frame ? [tags.frame.source] : [])];
  const openers = tags.openers ?? tags.wrappers.slice(0, 1);
  const wrapper = new RegExp(frames.join('|') || '(?!)', 'g');
  return {
    name,
    ...definedOf({ reasoning: tags.reasoning }),
    parse(text, tools = []) {
      const found = emptyFindings();
      const [callOpen = ''] = openers;
      const rest = takeReasoning(text, tags.reasoning ?? thinkTags, { found, callOpen: callOpen || tags.callClose });
      const call = new RegExp(tags.call, 'g');
      const places = new Places(rest);
      let at = 0;
      let hasOpener = false;
      while (at < rest.length) {
        call.lastIndex = at;
        const match = call.exec(rest);
        const before = rest.slice(at, match?.index);
        hasOpener ||= openers.some((tag) => before.includes(tag));
        found.content.push(dropFrames(before, wrapper, 16));
        if (!match) break;
        at = readCall(rest, { from: call.lastIndex, name: match[1] ?? '' }, { found, tools, tags, places });
      }
      if (found.calls.length + found.malformed.length > 0 || !hasOpener) return toParsedTurn(found);
      found.content.splice(0, Infinity, rest);
      found.malformed.push(`A ${callOpen} has no readable call in it, so it was not run.`);
      return toParsedTurn(found);
    },
  };
}

interface Reading {
  readonly found: Findings;
  readonly tools: readonly ToolSpec[];
  readonly tags: XmlTags;
  /** Finds closing tags; reading stays linear because no text is searched twice. */
  readonly places: Places;
}

/** Where texts occur next, remembered while reading goes on. */
class Places {
  readonly #text: string;
  readonly #next = new Map<string, number>();

  constructor(text: string) {
    this.#text = text;
  }

  /** The first place at or after `from`, which never goes back for the same text; -1 if there is none. */
  find(part: string, from: number): number {
    const known = this.#next.get(part);
    if (known !== undefined && (known < 0 || known >= from)) return known;
    const place = this.#text.indexOf(part, from);
    this.#next.set(part, place);
    return place;
  }
}

/** Reads the arguments in order, so that a value may contain any tag except its own closing tag. */
function readCall(text: string, { from, name }: { from: number; name: string }, reading: Reading): number {
  const { found, tools, tags } = reading;
  const args: Record<string, unknown> = {};
  const argument = new RegExp(`\\s*(?:${tags.argument.source})`, 'y');
  const end = endOfCall(tags);
  for (let at = from; ; ) {
    end.lastIndex = at;
    if (end.test(text)) {
      found.calls.push({ id: toCallId(found.calls.length), name: name.trim(), arguments: args });
      return end.lastIndex;
    }
    argument.lastIndex = at;
    const match = argument.exec(text);
    const key = (match?.[1] ?? '').trim();
    const close = match ? endOfValue(text, { from: argument.lastIndex, name, key }, reading) : undefined;
    if (!match || !close) return reportUnclosed(text, { at, name, isValue: match !== null }, { found, tags });
    setOwn(
      args,
      key,
      toValue(text.slice(argument.lastIndex, close.at), { tags, isString: match[2], types: typesOf(tools, name.trim(), key) }),
    );
    at = close.next;
  }
}

/** The closing tag; where it is missing, the closing tag of what is around the calls. */
function endOfCall({ callClose, wrappers }: XmlTags): RegExp {
  const outer = wrappers.filter((tag) => tag.startsWith('</')).map((tag) => `(?=${RegExp.escape(tag)})`);
  return new RegExp(`\\s*(?:${[RegExp.escape(callClose), ...outer].join('|')})`, 'y');
}

function closeOf({ argumentClose }: XmlTags, key: string): string {
  return typeof argumentClose === 'string' ? argumentClose : argumentClose(key);
}

interface ValueStart {
  readonly from: number;
  readonly name: string;
  readonly key: string;
}

/** A value whose closing tag is missing ends where another parameter of the tool starts on a line of its own, or where the call ends. */
function endOfValue(
  text: string,
  { from, name, key }: ValueStart,
  { tags, tools, places }: Reading,
): { readonly at: number; readonly next: number } | undefined {
  const closeTag = closeOf(tags, key);
  const close = places.find(closeTag, from);
  if (!tags.hasLines) return close < 0 ? undefined : { at: close, next: close + closeTag.length };
  const callEnd = close < 0 ? places.find(`\n${tags.callClose}`, from) : close;
  if (callEnd < 0) return undefined;
  const value = text.slice(from, callEnd);
  for (const match of value.matchAll(new RegExp(`\\n(?:${tags.argument.source})`, 'g'))) {
    const other = (match[1] ?? '').trim();
    if (other !== key && typesOf(tools, name.trim(), other)) return { at: from + match.index, next: from + match.index };
  }
  return { at: callEnd, next: close < 0 ? callEnd : close + closeTag.length };
}

function reportUnclosed(
  text: string,
  { at, name, isValue }: { at: number; name: string; isValue: boolean },
  { found, tags }: Pick<Reading, 'found' | 'tags'>,
): number {
  const seen = excerpt(text.slice(at, at + 300));
  found.malformed.push(
    `The call to ${excerpt(name)} was not closed with ${tags.callClose}, or a parameter not with ${closeOf(tags, '…')}: ${seen}`,
  );
  return isValue ? text.length : at;
}

function toValue(
  raw: string,
  { tags, isString, types }: { tags: XmlTags; isString: string | undefined; types: ReadonlySet<string> | undefined },
): unknown {
  const bare = tags.hasLines && raw.startsWith('\n') ? raw.slice(1).replace(/\n$/, '') : raw;
  const text = tags.hasCdata ? bare.replace(/^<!\[CDATA\[([\s\S]*)\]\]>$/, '$1') : bare;
  if (tags.readNested && types?.has('string') !== true) {
    const nested = tags.readNested(text);
    if (nested !== undefined) return nested;
  }
  if (isString === 'true' || isString === 'string') return text;
  if (isString !== undefined) {
    const value = parseJson(text);
    return value.ok ? value.json : text;
  }
  return toTyped(text, types);
}
