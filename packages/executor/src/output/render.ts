// Terminal output as text: what a person would read on the screen afterwards, line by line.
// Escape sequences are removed. Carriage returns, backspaces and line erasure are applied within their line. Of the control characters,
// only newline and tab remain. Cursor movement between lines is ignored.

import type { KeptOutput } from './output.ts';

/** Invalid UTF-8 becomes U+FFFD. Without the note about the cut, the result has at most three bytes for each byte kept. */
export function renderOutput(kept: KeptOutput): string {
  // Without a cut, head and tail are one stream, and a character may span both.
  if (kept.cutBytes === 0) return renderTerminal(Buffer.concat([kept.head, kept.tail]).toString('utf8'));
  const head = renderTerminal(kept.head.toString('utf8'));
  const tail = renderTerminal(kept.tail.toString('utf8'));
  return `${head}\n[... ${kept.cutBytes} bytes left out ...]\n${tail}`;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this file is about
const special = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/;

// Of a sequence that never ends (binary output), only the introducer is removed.
const escapes =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: as above
  /\x1b\[([0-?]*)[ -/]*([@-~])|\x1b[\]PX^_][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)|\x1b[ -/]+[0-~]|\x1b[\]PX^_[]|\x1b[0-~]?/g;

export function renderTerminal(text: string): string {
  if (!special.test(text)) return text;
  // Line erasure is the only sequence kept: each of its three kinds becomes one control character.
  const plain = text
    .replace(stops, '')
    .replace(escapes, (_all, params: string | undefined, final: string | undefined) =>
      final === 'K' ? (erasures[params || '0'] ?? '') : '',
    );
  return plain
    .split('\n')
    .map((line) => (special.test(line) ? renderLine(line) : line))
    .join('\n');
}

const erasures: Record<string, string> = { '0': '\x11', '1': '\x12', '2': '\x13' };

// biome-ignore lint/suspicious/noControlCharactersInRegex: as above
const stops = /[\x11-\x13]/g;

function renderLine(line: string): string {
  const cells: string[] = [];
  let column = 0;
  for (const character of line) {
    if (character === '\r') column = 0;
    else if (character === '\b') column = Math.max(0, column - 1);
    else if (character === erasures['0']) cells.length = Math.min(cells.length, column);
    else if (character === erasures['1']) cells.fill(' ', 0, column);
    else if (character === erasures['2']) cells.length = 0;
    else if (character === '\t' || !special.test(character)) {
      while (cells.length < column) cells.push(' ');
      cells[column] = character;
      column += 1;
    }
  }
  return cells.join('');
}
