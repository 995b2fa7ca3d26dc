// Reasoning at the start of a turn: between tags that the model wrote, or up to the closing tag if the generation prompt opened it. Text
// inside is never parsed as a call.

import type { Findings, ReasoningTags } from './tool-calls.ts';

export const thinkTags: ReasoningTags = { open: '<think>', close: '</think>' };
export const mistralThinkTags: ReasoningTags = { open: '[THINK]', close: '[/THINK]' };

/** Removes the leading reasoning and returns the rest. A closing tag after `callOpen` does not end reasoning. */
export function takeReasoning(text: string, tags: ReasoningTags, { found, callOpen }: { found: Findings; callOpen: string }): string {
  let rest = skipUnopened(text, tags, { found, callOpen });
  for (;;) {
    const start = rest.search(/\S/);
    if (start < 0 || !rest.startsWith(tags.open, start)) return rest;
    const read = readThought(rest, start + tags.open.length, { found, tags });
    rest = rest.slice(read);
  }
}

/** If the generation prompt opened the reasoning, the text starts inside it. Returns where the closing tag is, or -1. */
export function endOfUnopened(text: string, tags: ReasoningTags, callOpen: string): number {
  const close = text.indexOf(tags.close);
  if (close < 0) return -1;
  const before = text.slice(0, close);
  return before.includes(tags.open) || before.includes(callOpen) ? -1 : close;
}

function skipUnopened(text: string, tags: ReasoningTags, { found, callOpen }: { found: Findings; callOpen: string }): string {
  const close = endOfUnopened(text, tags, callOpen);
  if (close < 0) return text;
  found.thoughts.push(text.slice(0, close));
  return text.slice(close + tags.close.length);
}

/** Reads the reasoning that starts at `from`; returns where it ends. */
export function readThought(text: string, from: number, { found, tags }: { found: Findings; tags: ReasoningTags }): number {
  const close = text.indexOf(tags.close, from);
  found.thoughts.push(text.slice(from, close < 0 ? undefined : close));
  if (close >= 0) return close + tags.close.length;
  found.malformed.push(`The reasoning was not closed with ${tags.close}, so nothing after ${tags.open} was read.`);
  return text.length;
}
