// The text part of the file editor: numbered lines, and edits that either apply exactly or say why they cannot.

export interface Edit {
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
  const at = text.indexOf(before);
  if (at < 0) return { problem: 'old_str does not occur in the file: it must match exactly, including whitespace' };
  const places = findAll(text, before);
  if (places.length > 1) {
    const lines = places.map((place) => lineOf(text, place));
    return {
      problem: `old_str occurs ${places.length} times, on lines ${lines.slice(0, 20).join(', ')}: include more of the surrounding text`,
    };
  }
  return { text: text.slice(0, at) + after + text.slice(at + before.length), line: lineOf(text, at), lines: countLines(after) };
}

/** Inserts after the given line; 0 is the start of the file. */
export function insertAfter(text: string, line: number, inserted: string): EditOutcome {
  const lines = text === '' ? [] : text.replace(/\n$/, '').split('\n');
  if (line > lines.length) return { problem: `insert_line is ${line}, but the file has ${lines.length} lines` };
  const pieces = inserted.replace(/\n$/, '').split('\n');
  const all = [...lines.slice(0, line), ...pieces, ...lines.slice(line)];
  // A last line without a newline keeps that; text inserted after it decides whether the file ends with one.
  const isOpen = text !== '' && !text.endsWith('\n');
  const ending = isOpen ? line === lines.length && inserted.endsWith('\n') : true;
  return { text: all.join('\n') + (ending ? '\n' : ''), line: line + 1, lines: pieces.length };
}

/** The lines from `first` to `last`, from 1, each with its number. */
export function renderLines(text: string, first: number, last: number): string {
  const lines = text.replace(/\n$/, '').split('\n');
  return lines
    .slice(first - 1, last)
    .map((line, index) => `${String(first + index).padStart(6)}\t${line}`)
    .join('\n');
}

export function renderEdit(edit: Edit): string {
  return renderLines(edit.text, Math.max(1, edit.line - around), edit.line + edit.lines - 1 + around);
}

export function countLines(text: string): number {
  return text.replace(/\n$/, '').split('\n').length;
}

function findAll(text: string, part: string): number[] {
  const places: number[] = [];
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + 1)) places.push(at);
  return places;
}

function lineOf(text: string, at: number): number {
  return text.slice(0, at).split('\n').length;
}
