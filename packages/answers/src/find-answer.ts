// Finds the final answer in the text of an agent: the last box, the last sentence that announces it, or the last number. Linear in the text.

interface FoundAnswer {
  readonly text: string;
  /** `unread`: too long, and the text is empty. A part of an answer is no answer. */
  readonly from: 'box' | 'sentence' | 'math' | 'number' | 'unread';
}

const maxTextLength = 1 << 17;
/** Boxes that are looked at, from the end. */
const maxBoxes = 32;
const maxBoxLength = 16_384;

/** Undefined if there is none. */
export function findAnswer(whole: string): FoundAnswer | undefined {
  const text = whole.slice(-maxTextLength);
  const box = lastBoxes(text);
  if (typeof box === 'string') return { text: box, from: 'box' };
  if (box === tooLong || isEndBoxed(whole, whole.length - maxTextLength)) return unread;
  const sentence = lastSentence(text);
  if (sentence !== undefined) return { text: sentence, from: 'sentence' };
  const math = lastMath(text);
  if (math !== undefined) return { text: math, from: 'math' };
  return lastNumber(text);
}

/** Whether a box that was opened before this place is closed after it. */
function isEndBoxed(text: string, place: number): boolean {
  let first = place;
  for (let [seen, start] = [0, lastBox(text, place)]; start >= 0 && seen < maxBoxes; start = lastBox(text, start), seen += 1) first = start;
  if (first >= place) return false;
  const opened: number[] = [];
  let depth = 0;
  for (let at = first; at < text.length && (at < place || opened.length > 0); at += 1) {
    const code = text.charCodeAt(at);
    if (code === backslash) {
      if (at < place && isBoxAt(text, at)) opened.push(depth);
      const next = text.charCodeAt(at + 1);
      if (next === openBrace || next === closeBrace) at += 1;
    } else if (code === openBrace) depth += 1;
    else if (code === closeBrace) {
      depth -= 1;
      if (depth > (opened.at(-1) ?? depth)) continue;
      if (opened.length > 0 && at >= place) return true;
      opened.pop();
    }
  }
  return false;
}

const boxNames = ['\\boxed{', '\\boxed {', '\\fbox{'];

const [openBrace, closeBrace, backslash, letterB, letterF] = [0x7b, 0x7d, 0x5c, 0x62, 0x66];

function isBoxAt(text: string, at: number): boolean {
  const next = text.charCodeAt(at + 1);
  return (next === letterB || next === letterF) && boxNames.some((name) => text.startsWith(name, at));
}

const tooLong = Symbol('too long');
const unread = { text: '', from: 'unread' } as const;

/** The last box, with the boxes before it that only a comma, `and` or `or` separates from it. */
function lastBoxes(text: string): string | typeof tooLong | undefined {
  const boxes: string[] = [];
  let [end, before, seen] = [text.length, text.length, 0];
  for (let start = lastBox(text, end); start >= 0 && seen < maxBoxes; start = lastBox(text, start)) {
    seen += 1;
    const open = text.indexOf('{', start);
    // No box closes after another one that never does.
    const close = closeOf(text, open, before);
    before = start;
    if (close < 0) continue;
    const between = text.slice(close + 1, Math.min(end, close + 100));
    if (
      boxes.length > 0 &&
      !/^[\s$\\()[\]]*(?:,|and|or|,\s*and|;|\\text\{\s*(?:and|or)\s*\})[\s$\\()[\]]*(?:[a-z]\w*\s*=\s*)?$/i.test(between)
    )
      break;
    if (close - open > maxBoxLength) return tooLong;
    boxes.unshift(text.slice(open + 1, close));
    end = start;
  }
  return boxes.length === 0 ? undefined : boxes.join(', ');
}

/** The last start of a box before this place, or -1. */
function lastBox(text: string, before: number): number {
  for (let at = text.lastIndexOf('box', before); at > 0; at = text.lastIndexOf('box', at - 1))
    for (const start of [at - 1, at - 2]) if (start < before && isBoxAt(text, start)) return start;
  return -1;
}

/** Where the brace closes; at the end of the text if it never does, as in a reply that was cut off, there is no answer. */
function closeOf(text: string, open: number, end: number): number {
  let depth = 0;
  for (let at = open; at < end; at += 1) {
    if (text[at] === '\\' && (text[at + 1] === '{' || text[at + 1] === '}')) at += 1;
    else if (text[at] === '{') depth += 1;
    else if (text[at] === '}') {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  return -1;
}

const announcement = /\banswer(?: to [^\n:.]{0,80})?(?:\*\*)? ?(?:is|was|are|:|=)|####|\bsolutions? (?:is|are)\b/gi;
const maxSentenceLength = 2000;

/** What follows the last announcement on its line, or on the next one that is not empty. */
function lastSentence(text: string): string | undefined {
  let start = -1;
  for (const match of text.matchAll(announcement)) {
    const next = skip(text, match.index + match[0].length, ' \t\r\n:*');
    if (next < text.length) start = next;
  }
  if (start < 0) return undefined;
  const [line = ''] = text.slice(start, start + maxSentenceLength).split('\n', 1);
  const clean = (formulasOf(line) ?? endSentence(line)).replaceAll('*', '').trim();
  return clean === '' ? undefined : clean;
}

function skip(text: string, from: number, marks: string): number {
  let at = from;
  while (at < text.length && marks.includes(text[at] ?? '')) at += 1;
  return at;
}

const between = /\s{0,5}(,? ?(?:and|or)|[,;])\s{0,5}/y;

/** The formulas that a sentence starts with, and those that only a comma, `and` or `or` separates from them. */
function formulasOf(line: string): string | undefined {
  const [before = ''] = /^[^$\\\d]{0,20}/.exec(line) ?? [];
  if (/^\(?[A-J][).] /.test(before)) return undefined; // `(C) $\frac{3}{8}$` is a choice and its text
  const parts: string[] = [];
  let at = before.length;
  for (;;) {
    const found = readFormula(line, at);
    if (found === undefined) break;
    parts.push(found.text);
    between.lastIndex = found.end;
    const separator = between.exec(line);
    if (separator === null) break;
    parts.push(/or/.test(separator[1] ?? '') ? ' or ' : ', ');
    at = between.lastIndex;
  }
  const text = (parts.length % 2 === 0 ? parts.slice(0, -1) : parts).join('');
  return text === '' ? undefined : text;
}

const formulaEnds: Readonly<Record<string, string>> = { '\\(': '\\)', '\\[': '\\]' };

/** The formula that starts here, between dollar signs, `\(` and `\)` or `\[` and `\]`. */
function readFormula(text: string, at: number): { readonly text: string; readonly end: number } | undefined {
  const close = formulaEnds[text.slice(at, at + 2)] ?? '$';
  if (close === '$' && text[at] !== '$') return undefined;
  const start = close === '$' ? skip(text, at, '$') : at + 2;
  for (let end = start; end < text.length; end += 1) {
    if (text.startsWith(close, end)) return { text: text.slice(start, end), end: close === '$' ? skip(text, end, '$') : end + 2 };
    if (text[end] === '\\') end += 1;
  }
  return undefined;
}

/** Up to the full stop; a decimal point is none. */
function endSentence(text: string): string {
  const end = /\.(?=\s|$)/.exec(text)?.index ?? text.length;
  return text.slice(0, end);
}

/** The last formula between dollar signs; what follows its last `=`, where that is all of it. */
function lastMath(text: string): string | undefined {
  const found = lastFormula(text.slice(-10_000));
  const parts = found?.split('=');
  return parts && parts.length > 1 && /^[\s\d.+\-*/^(){}\\a-z]*$/i.test(parts.at(-1) ?? '') ? parts.at(-1)?.trim() : found?.trim();
}

const maxFormulaLength = 500;

function lastFormula(text: string): string | undefined {
  let last: string | undefined;
  for (const line of text.split('\n'))
    for (let at = line.indexOf('$'); at >= 0; at = line.indexOf('$', at)) {
      const isEscaped = line[at - 1] === '\\';
      const found = isEscaped ? undefined : readFormula(line, at);
      if (found !== undefined && found.text.length <= maxFormulaLength) last = found.text;
      at = isEscaped ? at + 1 : (found?.end ?? line.length);
    }
  return last;
}

const number = /-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:\s?\/\s?\d+)?\s?%?/g;

function lastNumber(whole: string): FoundAnswer | undefined {
  const text = whole.slice(-10_000);
  let last: RegExpExecArray | undefined;
  for (const match of text.matchAll(number)) last = match;
  if (last === undefined) return undefined;
  if (last.index === 0 && text.length < whole.length) return unread;
  return { text: last[0].replace(/,$/, '').trim(), from: 'number' };
}
