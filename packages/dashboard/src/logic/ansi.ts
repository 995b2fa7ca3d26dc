// Terminal output as styled spans: colours and weights of SGR sequences are kept, every other sequence is dropped, and a line that was
// overwritten shows what was left on it. One pass over the text; the number of spans is bounded.

import { toHarmless } from './harmless.ts';

interface AnsiSpan {
  readonly text: string;
  /** Class names, such as `fg-1 bold`; empty for plain text. */
  readonly style: string;
}

interface AnsiText {
  readonly spans: readonly AnsiSpan[];
  /** Styles changed too often: the rest is one plain span. */
  readonly isFlood: boolean;
}

const mostSpans = 4000;
const escapeMark = '\u001b';

interface AnsiStyle {
  fg: string;
  bg: string;
  readonly on: Set<string>;
}

export function parseAnsi(source: string): AnsiText {
  const text = overwrite(source);
  const spans: AnsiSpan[] = [];
  const style: AnsiStyle = { fg: '', bg: '', on: new Set() };
  let plain = '';
  let at = 0;
  const flush = () => {
    if (plain !== '') spans.push({ text: toHarmless(plain), style: render(style) });
    plain = '';
  };
  while (at < text.length) {
    const next = text.indexOf(escapeMark, at);
    if (next < 0 || spans.length >= mostSpans) break;
    plain += text.slice(at, next);
    const sequence = readSequence(text, next);
    if (sequence.sgr !== undefined) {
      flush();
      apply(style, sequence.sgr);
    }
    at = next + sequence.length;
  }
  const isFlood = spans.length >= mostSpans;
  plain += isFlood ? stripSequences(text.slice(at)) : text.slice(at);
  flush();
  return { spans, isFlood };
}

export function stripAnsi(text: string): string {
  return toHarmless(stripSequences(overwrite(text)));
}

function stripSequences(text: string): string {
  let plain = '';
  let at = 0;
  for (let next = text.indexOf(escapeMark); next >= 0; next = text.indexOf(escapeMark, at)) {
    plain += text.slice(at, next);
    at = next + readSequence(text, next).length;
  }
  return plain + text.slice(at);
}

/** A progress bar writes one line again and again: what comes after the last carriage return of a line is shown. */
function overwrite(text: string): string {
  if (!text.includes('\r')) return text;
  return text
    .split('\n')
    .map((line) => {
      const trimmed = line.endsWith('\r') ? line.slice(0, -1) : line;
      return trimmed.slice(trimmed.lastIndexOf('\r') + 1);
    })
    .join('\n');
}

/** No sequence is longer than this; a longer one is shown as text. */
const longestSequence = 256;

function readSequence(text: string, start: number): { readonly length: number; readonly sgr?: string } {
  const kind = text[start + 1];
  const end = Math.min(text.length, start + longestSequence);
  if (kind === '[') {
    for (let at = start + 2; at < end; at++) {
      const code = text.charCodeAt(at);
      if (code >= 0x40 && code <= 0x7e)
        return text[at] === 'm' ? { length: at - start + 1, sgr: text.slice(start + 2, at) } : { length: at - start + 1 };
      if (code < 0x20 || code > 0x3f) return { length: at - start };
    }
    return { length: end - start };
  }
  if (kind === ']' || kind === 'P' || kind === '_' || kind === '^') {
    for (let at = start + 2; at < end; at++) {
      if (text[at] === '\u0007') return { length: at - start + 1 };
      if (text[at] === escapeMark && text[at + 1] === '\\') return { length: at - start + 2 };
    }
    return { length: 2 };
  }
  // A choice of the character set has one more character.
  return { length: kind === undefined ? 1 : '()*+-./#%'.includes(kind) ? 3 : 2 };
}

const flags: Readonly<Record<number, string>> = { 1: 'bold', 2: 'dim', 3: 'italic', 4: 'underline', 7: 'inverse', 9: 'strike' };
const resets: Readonly<Record<number, readonly string[]>> = {
  22: ['bold', 'dim'],
  23: ['italic'],
  24: ['underline'],
  27: ['inverse'],
  29: ['strike'],
};

function apply(style: AnsiStyle, parameters: string): void {
  const codes = parameters.split(/[;:]/).map((part) => (part === '' ? 0 : Number(part)));
  for (let index = 0; index < codes.length; index++) {
    const code = codes[index] ?? 0;
    if (code === 0) clear(style);
    else if (flags[code] !== undefined) style.on.add(flags[code]);
    else if (resets[code] !== undefined) for (const flag of resets[code]) style.on.delete(flag);
    else if (code === 38 || code === 48) {
      const isIndexed = codes[index + 1] === 5;
      const colour = isIndexed ? (codes[index + 2] ?? 0) : nearestColour(codes[index + 2], codes[index + 3], codes[index + 4]);
      setColour(style, code === 38, toBasic(colour));
      index += isIndexed ? 2 : 4;
    } else if (code === 39) style.fg = '';
    else if (code === 49) style.bg = '';
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) setColour(style, true, code >= 90 ? code - 82 : code - 30);
    else if ((code >= 40 && code <= 47) || (code >= 100 && code <= 107)) setColour(style, false, code >= 100 ? code - 92 : code - 40);
  }
}

function clear(style: AnsiStyle): void {
  style.fg = '';
  style.bg = '';
  style.on.clear();
}

function setColour(style: AnsiStyle, isForeground: boolean, colour: number): void {
  if (isForeground) style.fg = `fg-${colour}`;
  else style.bg = `bg-${colour}`;
}

function render({ fg, bg, on }: AnsiStyle): string {
  return [fg, bg, ...on].filter((name) => name !== '').join(' ');
}

/** Of the 256 colours, the nearest of the sixteen that have a readable shade in both themes. */
function toBasic(colour: number): number {
  if (!(colour >= 0 && colour < 256)) return 7;
  if (colour < 16) return colour;
  if (colour >= 232) return colour < 244 ? 8 : 7;
  const index = colour - 16;
  return nearestColour(Math.floor(index / 36) * 51, (Math.floor(index / 6) % 6) * 51, (index % 6) * 51);
}

function nearestColour(red = 0, green = 0, blue = 0): number {
  const most = Math.max(red, green, blue);
  if (most < 48) return 8;
  const bit = (value: number) => (value > most / 2 ? 1 : 0);
  const base = bit(red) + 2 * bit(green) + 4 * bit(blue);
  return most > 190 ? base + 8 : base;
}
