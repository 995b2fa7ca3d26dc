// Positions in text as Python counts them, by code points, without an array of them: a turn of the policy may be a megabyte.

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000;

const startsPair = (text: string, at: number): boolean => isHigh(text.charCodeAt(at)) && isLow(text.charCodeAt(at + 1));

const halves = /[\ud800-\udfff]/;

export function countPoints(text: string): number {
  if (!halves.test(text)) return text.length;
  let pairs = 0;
  for (let at = 1; at < text.length; at += 1) if (isLow(text.charCodeAt(at)) && isHigh(text.charCodeAt(at - 1))) pairs += 1;
  return text.length - pairs;
}

/** Where this code point starts; the length of the text for what lies behind its end. */
function findPoint(text: string, point: number): number {
  if (!halves.test(text)) return Math.max(0, Math.min(point, text.length));
  let at = 0;
  for (let left = point; left > 0 && at < text.length; left -= 1) at += startsPair(text, at) ? 2 : 1;
  return at;
}

export function slicePoints(text: string, from: number, to = Number.POSITIVE_INFINITY): string {
  const start = findPoint(text, from);
  const rest = text.slice(start);
  return to === Number.POSITIVE_INFINITY ? rest : rest.slice(0, findPoint(rest, to - from));
}

/** The code point that starts at this unit, which may be half a pair; empty at the end. */
export function pointAt(text: string, at: number): string {
  return text.slice(at, at + (startsPair(text, at) ? 2 : 1));
}

/** By code points, as Python orders; JavaScript orders by UTF-16 units. */
export function orderText(a: string, b: string): number {
  let at = 0;
  while (at < a.length && at < b.length && a.charCodeAt(at) === b.charCodeAt(at)) at += 1;
  if (at > 0 && isHigh(a.charCodeAt(at - 1))) at -= 1;
  return (a.codePointAt(at) ?? -1) - (b.codePointAt(at) ?? -1);
}
