// Finds the short answer in a text and compares it with the expected one by rule: numbers by value, everything else by normalised text.

/** The last \boxed{…}; otherwise the text after the last "answer is" or "####"; otherwise the last number. Undefined if there is none. */
export function parseAnswer(text: string): string | undefined {
  return lastBoxed(text) ?? lastMatch(text, /(?:answer is|answer:|####)\s*([^\n]+)/gi) ?? lastMatch(text, /(-?[\d,]*\.?\d+(?:\/\d+)?%?)/g);
}

export function isSameAnswer(given: string, truth: string): boolean {
  const [a, b] = [normalise(given), normalise(truth)];
  if (a === b) return true;
  const [x, y] = [toNumber(a), toNumber(b)];
  return x !== undefined && y !== undefined && Math.abs(x - y) <= 1e-9 * Math.max(1, Math.abs(y));
}

function lastBoxed(text: string): string | undefined {
  const start = text.lastIndexOf('\\boxed{');
  if (start < 0) return undefined;
  let depth = 0;
  for (let at = start + '\\boxed'.length; at < text.length; at += 1) {
    if (text[at] === '{') depth += 1;
    if (text[at] === '}') depth -= 1;
    if (depth === 0) return text.slice(start + '\\boxed{'.length, at);
  }
  return undefined;
}

function lastMatch(text: string, pattern: RegExp): string | undefined {
  return [...text.matchAll(pattern)].at(-1)?.[1];
}

function normalise(text: string): string {
  return text
    .trim()
    .replace(/\\(?:left|right|,|;|!|\s)/g, '')
    .replace(/\\[dt]?frac\{([^{}]+)\}\{([^{}]+)\}/g, '$1/$2')
    .replace(/\\(?:text|mathrm)\{([^{}]*)\}/g, '$1')
    .replace(/^\$+|\$+$/g, '')
    .replace(/(\d),(?=\d{3}\b)/g, '$1')
    .replace(/\s+/g, '')
    .replace(/[.。]$/, '')
    .toLowerCase();
}

function toNumber(text: string): number | undefined {
  const match = /^(-?\d*\.?\d+(?:e-?\d+)?)(?:\/(\d*\.?\d+))?(%)?$/.exec(text);
  if (!match) return undefined;
  const value = Number(match[1]) / (match[2] === undefined ? 1 : Number(match[2]));
  return match[3] ? value / 100 : value;
}
