// Text for terminals: widths, columns, colours, numbers and bars. Everything here is pure.

import { stripVTControlCharacters, styleText } from 'node:util';
import stringWidth from 'string-width';
import wrapAnsi from 'wrap-ansi';

export type Colour = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'blue' | 'magenta' | 'cyan' | 'inverse';

export type Paint = (colour: Colour, text: string) => string;

export function openPaint(color: boolean): Paint {
  return (colour, text) => (color && text !== '' ? styleText(colour, text, { validateStream: false }) : text);
}

/** True for a terminal that shows colours, unless NO_COLOR is set. */
export function wantsColor(stream: { readonly isTTY?: boolean }, env: Readonly<Record<string, string | undefined>>): boolean {
  return stream.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb';
}

/** The text without colours. */
export function toPlain(text: string): string {
  return stripVTControlCharacters(text);
}

/** The columns that a text takes on a terminal: 2 for east Asian characters and emoji, 0 for colours and combining marks. */
export function width(text: string): number {
  return stringWidth(text);
}

export function padEnd(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - width(text)));
}

export function padStart(text: string, columns: number): string {
  return ' '.repeat(Math.max(0, columns - width(text))) + text;
}

const graphemes = new Intl.Segmenter();

/** Cuts a text without colours to `columns`, with an ellipsis where something is missing. */
export function cut(text: string, columns: number): string {
  if (width(text) <= columns) return text;
  let kept = '';
  let used = 0;
  for (const { segment } of graphemes.segment(text)) {
    used += width(segment);
    if (used > columns - 1) break;
    kept += segment;
  }
  return columns < 1 ? '' : `${kept}…`;
}

/** Cuts to `columns` and keeps colours, which take no columns. */
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

/** Lines of at most `columns`, broken at spaces where possible. A broken line keeps its indentation. */
export function wrap(text: string, columns: number): string[] {
  return text.split('\n').flatMap((line) => {
    const room = Math.max(8, columns);
    const [spaces = ''] = /^ */.exec(line) ?? [];
    const indent = ' '.repeat(Math.min(spaces.length, Math.floor(room / 2)));
    const broken = wrapAnsi(line.slice(spaces.length), room - indent.length, { hard: true });
    return broken.split('\n').map((part) => (part === '' ? '' : indent + part));
  });
}

/** Makes control characters visible, so that text from a model cannot control the reader's terminal. */
export function toVisible(text: string): string {
  return text.replace(/\t/g, '    ').replace(/[^\P{Cc}\n]/gu, (char) => {
    const code = char.charCodeAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? '␡' : '�';
  });
}

export function toCount(value: number): string {
  return Math.round(value).toLocaleString('en');
}

/** Three digits: 0.12, 1.23, 12.3, 123, 1,234. */
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

/** A bar with a resolution of an eighth of a column. */
export function bar(share: number, columns: number): string {
  const eighths = Math.round(Math.min(1, Math.max(0, share)) * columns * 8);
  const partial = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'][eighths % 8] ?? '';
  return padEnd('█'.repeat(Math.floor(eighths / 8)) + partial, columns);
}

/** A bar whose empty part is dotted, so that its end is visible. */
export function progressBar(share: number, columns: number): string {
  const filled = bar(share, columns).trimEnd();
  return filled + '·'.repeat(Math.max(0, columns - width(filled)));
}
