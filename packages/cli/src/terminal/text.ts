// Text for terminals: numbers, durations, columns, bars and colours. Everything here is pure.

import { stripVTControlCharacters } from 'node:util';

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, magenta: 35, cyan: 36, inverse: 7 } as const;
export type Colour = keyof typeof codes;

export type Paint = (colour: Colour, text: string) => string;

export function openPaint(color: boolean): Paint {
  return (colour, text) => (color && text !== '' ? `\x1b[${codes[colour]}m${text}\x1b[0m` : text);
}

/** Colour only on a terminal that wants it. */
export function wantsColor(stream: { readonly isTTY?: boolean }, env: Readonly<Record<string, string | undefined>>): boolean {
  return stream.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb';
}

/** What a terminal would show, without colours. */
export function toPlain(text: string): string {
  return stripVTControlCharacters(text);
}

const graphemes = new Intl.Segmenter();
const wide =
  /^[\p{Extended_Pictographic}\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]/u;
const narrowPictograph = /^[\u00a9\u00ae\u2010-\u27bf]$/;

function charWidth(char: string): number {
  return wide.test(char) && !narrowPictograph.test(char) ? 2 : 1;
}

/** Columns that the text takes on a terminal. */
export function width(text: string): number {
  const plain = toPlain(text);
  if (/^[\x20-\x7e]*$/.test(plain)) return plain.length;
  let columns = 0;
  for (const { segment } of graphemes.segment(plain)) columns += charWidth(segment);
  return columns;
}

export function padEnd(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - width(text)));
}

export function padStart(text: string, columns: number): string {
  return ' '.repeat(Math.max(0, columns - width(text))) + text;
}

/** Cut to `columns`, with an ellipsis where something is missing. Takes no colours. */
export function cut(text: string, columns: number): string {
  if (width(text) <= columns) return text;
  let kept = '';
  let used = 0;
  for (const { segment } of graphemes.segment(text)) {
    used += charWidth(segment);
    if (used > columns - 1) break;
    kept += segment;
  }
  return columns < 1 ? '' : `${kept}…`;
}

/** Cut to `columns`; colours are kept, and take no room. */
export function clip(text: string, columns: number): string {
  if (width(text) <= columns) return text;
  let room = columns;
  const parts = text.split(colourCode).map((part, index) => {
    if (index % 2 === 1) return part;
    const kept = cut(part, room);
    room -= width(kept);
    return kept;
  });
  return parts.join('');
}

const colourCode = new RegExp(`(${String.fromCharCode(27)}\\[[0-9;]*m)`);

/** Lines of at most `columns`, broken at spaces where there are any; takes no colours. */
export function wrap(text: string, columns: number): string[] {
  return text.split('\n').flatMap((line) => wrapLine(line, Math.max(8, columns)));
}

function wrapLine(line: string, columns: number): string[] {
  const lines: string[] = [];
  let current = '';
  for (const word of line.split(/(?<= )(?=[^ ])/)) {
    if (width((current + word).trimEnd()) <= columns) {
      current += word;
      continue;
    }
    if (current !== '') lines.push(current.trimEnd());
    current = word;
    while (width(current.trimEnd()) > columns) {
      const head = takeColumns(current, columns);
      lines.push(head);
      current = current.slice(head.length);
    }
  }
  return [...lines, current.trimEnd()];
}

function takeColumns(text: string, columns: number): string {
  let taken = '';
  let used = 0;
  for (const { segment } of graphemes.segment(text)) {
    used += charWidth(segment);
    if (used > columns && taken !== '') break;
    taken += segment;
  }
  return taken;
}

/** Control characters as visible ones, so that what a model wrote cannot steer the reader's terminal. */
export function toVisible(text: string): string {
  return text.replace(/\t/g, '    ').replace(/[^\P{Cc}\n]/gu, (char) => {
    const code = char.charCodeAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? '␡' : '�';
  });
}

export function toCount(value: number): string {
  return Math.round(value).toLocaleString('en');
}

/** Three figures: 0.12, 1.23, 12.3, 123, 1,234. */
export function toRate(perSecond: number): string {
  const digits = perSecond === 0 || perSecond >= 100 ? 0 : perSecond >= 10 ? 1 : 2;
  return perSecond.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export function toBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value.toLocaleString('en', { maximumFractionDigits: value < 10 && unit > 0 ? 1 : 0 })} ${units[unit]}`;
}

/** 0.8 ms, 240 ms, 3.2 s, 2m 05s, 3h 07m, 2d 04h. */
export function toDuration(ms: number): string {
  if (ms < 10) return `${ms.toLocaleString('en', { maximumFractionDigits: 1 })} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0');
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${two(seconds % 60)}s`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}h ${two((seconds % 3600) / 60)}m`;
  return `${Math.floor(seconds / 86_400)}d ${two((seconds % 86_400) / 3600)}h`;
}

/** A bar in eighths of a column. */
export function bar(share: number, columns: number): string {
  const eighths = Math.round(Math.min(1, Math.max(0, share)) * columns * 8);
  const partial = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'][eighths % 8] ?? '';
  return padEnd('█'.repeat(Math.floor(eighths / 8)) + partial, columns);
}
