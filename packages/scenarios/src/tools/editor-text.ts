// The text part of the file editor: numbered lines, and edits that either apply exactly or say why they cannot.

interface Edit {
  readonly text: string;
  /** The first new line, from 1, and how many new lines there are. */
  readonly line: number;
  readonly lines: number;
}

export type EditOutcome = Edit | { readonly problem: string };

/** How many lines before and after an edit are shown. */
const around = 4;

export function replaceOnce(text: string, before: string, after: string): EditOutcome {
  if (before === '') return { problem: 'old_str is empty: give the text to replace, or use insert' };
  if (before.length > longestPart) return { problem: `old_str has more than ${longestPart} characters: give less of the text` };
  const places = findPlaces(text, before);
  const [at] = places;
  if (at === undefined) return { problem: 'old_str does not occur in the file: it must match exactly, including whitespace' };
  if (places.length > 1) {
    const count = places.length > mostPlaces ? `more than ${mostPlaces}` : places.length;
    const lines = places.slice(0, mostPlaces).map((place) => lineOf(text, place));
    return { problem: `old_str occurs ${count} times, on lines ${lines.join(', ')}: include more of the surrounding text` };
  }
  return { text: text.slice(0, at) + after + text.slice(at + before.length), line: lineOf(text, at), lines: countLines(after) };
}

/** Inserts after the given line; 0 is the start of the file. */
export function insertAfter(text: string, line: number, inserted: string): EditOutcome {
  const count = text === '' ? 0 : countLines(text);
  if (line > count) return { problem: `insert_line is ${line}, but the file has ${count} lines` };
  const at = line === 0 ? 0 : line === count ? text.length : startOfLine(text, line + 1);
  const [before, after] = [text.slice(0, at), text.slice(at)];
  const piece = inserted.endsWith('\n') ? inserted : `${inserted}\n`;
  // A last line without a newline keeps that; text inserted after it decides whether the file ends with one.
  const isOpen = before !== '' && !before.endsWith('\n');
  const whole = isOpen ? `${before}\n${inserted}` : `${before}${piece}${after}`;
  return { text: whole, line: line + 1, lines: countLines(inserted) };
}

/** The lines from `first` to `last`, from 1, each with its number. */
export function renderLines(text: string, first: number, last: number): string {
  const end = text.endsWith('\n') ? text.length - 1 : text.length;
  const lines: string[] = [];
  let at = startOfLine(text, first);
  for (let number = first; number <= last && at <= end; number += 1) {
    const next = text.indexOf('\n', at);
    const lineEnd = next < 0 || next > end ? end : next;
    lines.push(`${String(number).padStart(6)}\t${text.slice(at, lineEnd)}`);
    at = lineEnd + 1;
  }
  return lines.join('\n');
}

export function renderEdit(edit: Edit): string {
  return renderLines(edit.text, Math.max(1, edit.line - around), edit.line + edit.lines - 1 + around);
}

export function countLines(text: string): number {
  return lineOf(text, text.endsWith('\n') ? text.length - 1 : text.length);
}

const longestPart = 1 << 16;

/** How many places of a text that occurs more than once are named. */
const mostPlaces = 20;

/**
 * Where `part` occurs, up to one place more than are named. By Knuth, Morris and Pratt: the search of the engine takes the product of both
 * lengths for texts that are made for it.
 */
function findPlaces(text: string, part: string): number[] {
  const borders = new Int32Array(part.length);
  for (let at = 1, length = 0; at < part.length; at += 1) {
    while (length > 0 && part.charCodeAt(at) !== part.charCodeAt(length)) length = borders[length - 1] ?? 0;
    if (part.charCodeAt(at) === part.charCodeAt(length)) length += 1;
    borders[at] = length;
  }
  const places: number[] = [];
  for (let at = 0, length = 0; at < text.length && places.length <= mostPlaces; at += 1) {
    while (length > 0 && text.charCodeAt(at) !== part.charCodeAt(length)) length = borders[length - 1] ?? 0;
    if (text.charCodeAt(at) === part.charCodeAt(length)) length += 1;
    if (length < part.length) continue;
    places.push(at - part.length + 1);
    length = borders[length - 1] ?? 0;
  }
  return places;
}

function lineOf(text: string, at: number): number {
  let count = 1;
  for (let next = text.indexOf('\n'); next >= 0 && next < at; next = text.indexOf('\n', next + 1)) count += 1;
  return count;
}

/** Behind the end of the text if it has fewer lines. */
function startOfLine(text: string, line: number): number {
  let at = 0;
  for (let number = 1; number < line; number += 1) {
    const next = text.indexOf('\n', at);
    if (next < 0) return text.length + 1;
    at = next + 1;
  }
  return at;
}
