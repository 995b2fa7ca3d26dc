// The text of a chat template around placeholders for the texts of users and tools. The template never sees those texts, so they cannot
// influence it, and one run of the template serves all messages of the same shape.

import { definedOf, type Message } from '@millrace/protocol';
import { toJsonText, trimEndSpace, trimStartSpace } from '../jinja/values/python-text.ts';
import type { TextPart } from '../tokenizer/added-tokens.ts';

/** A placeholder, with how the template would change the text that goes there. */
interface Placeholder {
  readonly place: number;
  readonly trimsStart: boolean;
  readonly trimsEnd: boolean;
  readonly isJson: boolean;
  /** Whether the template writes quotes and ampersands as XML attributes have them. */
  readonly isXml: boolean;
}

/** The place of an id among those of the calls that are answered. */
interface IdPlace {
  readonly id: number;
  readonly isWhole: boolean;
}

export type Skeleton = readonly ({ readonly text: string } | Placeholder | IdPlace)[];

/** The space around a placeholder shows whether the template trims, and the quote inside it whether the template writes JSON. */
export function renderSkeleton(messages: readonly Message[], render: (guarded: readonly Message[]) => string): Skeleton {
  let mark = '\u{e000}';
  while (messages.some((message) => !isUntrusted(message) && JSON.stringify(message).includes(mark))) mark += '\u{e000}';
  let places = 0;
  const guard = () => `\u2003${mark}${places++}"\u{e001}\u2003`;
  const guarded = messages.map((message) => {
    if (!isUntrusted(message)) return message;
    return { ...message, content: guard(), ...definedOf({ name: message.name === undefined ? undefined : guard() }) };
  });
  const pieces = render(guardCallNames(guarded)).split(new RegExp(`(\u2003?${mark}[0-9]+(?:\\\\?"|&quot;)\u{e001}\u2003?)`, 'u'));
  return pieces.map((piece, index) => {
    if (index % 2 === 0) return { text: piece };
    const place = Number.parseInt(piece.replace(/^\D+/u, ''), 10);
    return {
      place,
      trimsStart: !piece.startsWith('\u2003'),
      trimsEnd: !piece.endsWith('\u2003'),
      isJson: piece.includes('\\'),
      isXml: piece.includes('&quot;'),
    };
  });
}

/** The name of a call that stands for the name of the result with this index, among the results that follow it. */
export function nameOfResult(index: number): string {
  return `result\u{e004}${index}`;
}

/** The policy may have invented the name, so the template sees it only as a placeholder. */
function guardCallNames(messages: readonly Message[]): readonly Message[] {
  return messages.map((message, at) => {
    if (!message.tool_calls?.some(({ name }) => name.includes('\u{e004}'))) return message;
    const names = messages
      .slice(at + 1)
      .filter(({ role }) => role === 'tool')
      .map(({ name = 'bash' }) => name);
    const calls = message.tool_calls.map((call) => ({ ...call, name: names[Number(call.name.split('\u{e004}')[1])] ?? 'bash' }));
    return { ...message, tool_calls: calls };
  });
}

export function fillSkeleton(skeleton: Skeleton, messages: readonly Message[], ids: readonly string[] = []): TextPart[] {
  const texts = messages.filter(isUntrusted).flatMap(({ content, name }) => (name === undefined ? [content] : [content, name]));
  return skeleton.flatMap((piece): TextPart[] => {
    if ('text' in piece) return piece.text === '' ? [] : [{ text: piece.text, trusted: true }];
    if ('id' in piece) return [{ text: ids[piece.id] ?? '', trusted: false }];
    return [{ text: fillText(texts[piece.place] ?? '', piece), trusted: false }];
  });
}

function fillText(text: string, { trimsStart, trimsEnd, isJson, isXml }: Placeholder): string {
  const start = trimsStart ? trimStartSpace(text) : text;
  const trimmed = trimsEnd ? trimEndSpace(start) : start;
  if (isXml) return trimmed.replaceAll('&', '&amp;').replaceAll('"', '&quot;');
  return isJson ? toJsonText(trimmed).slice(1, -1) : trimmed;
}

/** The messages, starting at `from`, whose content is not in the skeleton exactly once. */
export function findLost(skeleton: Skeleton, messages: readonly Message[], from = 0): readonly Message[] {
  const seen = new Map<number, number>();
  for (const piece of skeleton) if ('place' in piece) seen.set(piece.place, (seen.get(piece.place) ?? 0) + 1);
  let place = 0;
  return messages.filter((message, index) => {
    if (!isUntrusted(message)) return false;
    const own = place;
    place += message.name === undefined ? 1 : 2;
    return index >= from && seen.get(own) !== 1;
  });
}

/** System and assistant messages of an opening are written by the scenario. */
function isUntrusted({ role }: Message): boolean {
  return role === 'user' || role === 'tool';
}

const maxShapes = 256;

/** Runs `render` once per shape of new messages, and for each value of `variant`. */
export function cacheShapes<T>(
  render: (newMessages: readonly Message[]) => T,
  variant: () => number = () => 0,
): (newMessages: readonly Message[]) => T {
  const shapes = new Map<string, T>();
  return (newMessages) => {
    const ids = new Map(newMessages.flatMap(({ tool_call_id: id }, index) => (id === undefined ? [] : [[id, index] as const])));
    const shape = JSON.stringify([variant(), newMessages.map((message) => (isUntrusted(message) ? toShape(message, ids) : message))]);
    const skeleton = shapes.get(shape) ?? render(newMessages);
    for (const [oldest] of shapes.size < maxShapes ? [] : shapes) {
      shapes.delete(oldest);
      break;
    }
    shapes.set(shape, skeleton);
    return skeleton;
  };
}

/** Ids are the same shape if they are equally long and equal to the same others. */
function toShape(
  { content: _content, name, tool_call_id: id, ...rest }: Message,
  ids: ReadonlyMap<string, number>,
): Record<string, unknown> {
  return { ...rest, named: name !== undefined, ...(id === undefined ? {} : { id: [ids.get(id), [...id].length] }) };
}
