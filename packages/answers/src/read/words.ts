// Words in short answers: units after a number, numbers in words, and words that stand for a set.

import { parseUnit } from './units.ts';

const maxUnitLength = 80;

const marked = /(?:\\(?:text|mathrm|mbox|textrm|rm)\s?\{[^{}]*\}(?:\s?\^\s?\{?-?\d\}?)?\s?[/*]?\s?){1,4}$/;
const degrees = /(?:\^\s?(?:\{\s?\\circ\s?\}|\\circ)|\\degree)\s?(?:\\(?:text|mathrm)\s?\{\s?[CF]\s?\}|[CF]\b)?$/;
const plain =
  /(?:(?<=(?<!\^)[\d)}\]!%])(?=[a-zA-Zµ]{2})| )[a-zA-Zµ]{1,20}\.?(?:\s?\^\s?\{?-?\d\}?)?(?:(?: ?[/*] ?| )[a-zA-Z]{1,20}(?:\s?\^\s?\{?-?\d\}?)?){0,6}\.?$/;
const symbols =
  /^(?:and|or|choose|mod|sqrt|sin|cos|tan|log|ln|exp|max|min|gcd|lcm|pi|arcsin|arccos|arctan|is|then|when|where|if|but|not|plus|minus|times|over)$/i;

interface SplitUnit {
  readonly rest: string;
  readonly unit?: string;
  /** As in `3 million`. */
  readonly factor?: bigint;
}

/** A word after a number: `5\text{ cm}`, `5 cm` and `5 apples`, not `5x`. */
export function splitUnit(text: string): SplitUnit {
  const tail = text.slice(-maxUnitLength);
  const match = degrees.exec(tail) ?? marked.exec(tail) ?? plain.exec(tail);
  if (!match) return { rest: text };
  const unit = match[0].trim();
  const rest = text.slice(0, text.length - match[0].length).trimEnd();
  if (rest === '' || /\\(?:text|mathrm|mbox)\s?\{\s?(?:and|or)\b/.test(unit)) return { rest: text };
  const isDegree = degrees.test(match[0]);
  if (isDegree && /sin|cos|tan|cot|sec|csc/.test(rest)) return { rest: text };
  const isMarked = unit.startsWith('\\') || isDegree;
  if (!(isMarked ? /[\w)}\]!%]$/ : /[\d)}\]!%]$|\\pi$/).test(rest)) return { rest: text };
  const words = unit.replace(/\\(?:text|mathrm|mbox|textrm|rm)\s?|[{}]/g, ' ').trim();
  if (!isMarked && (!isUnitOrWords(words) || (words.length === 1 && rest.endsWith('\\pi')))) return { rest: text };
  return withFactor(rest, isDegree ? unit : words);
}

function isUnitOrWords(unit: string): boolean {
  if (parseUnit(unit) !== undefined || /^[ap]\.?m\.?$/i.test(unit)) return true;
  const words = unit.split(' ');
  return words.every((word) => /^[a-zA-Z]+\.?$/.test(word) && !symbols.test(word)) && (words.length > 1 || unit.length > 3);
}

const factors: Readonly<Record<string, bigint>> = { dozen: 12n, hundred: 100n, thousand: 1000n, million: 10n ** 6n, billion: 10n ** 9n };

function withFactor(rest: string, unit: string): SplitUnit {
  const [first = '', ...others] = unit.split(' ');
  const factor = factors[first.toLowerCase()];
  if (factor === undefined) return { rest, unit };
  return { rest, factor, ...(others.length === 0 ? {} : { unit: others.join(' ') }) };
}

const units = ['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten', 'eleven', 'twelve', 'thirteen'];
const teens = ['fourteen', 'fifteen', 'sixteen', 'seventeen', 'eighteen', 'nineteen'];
const tens = ['twenty', 'thirty', 'forty', 'fifty', 'sixty', 'seventy', 'eighty', 'ninety'];
const parts = ['half', 'third', 'quarter', 'fifth', 'sixth', 'seventh', 'eighth', 'ninth', 'tenth'];
const numerals: ReadonlyMap<string, number> = new Map([
  ...[...units, ...teens].map((word, at) => [word, at] as const),
  ...tens.map((word, at) => [word, 20 + 10 * at] as const),
]);

/** The whole text as a number, if it is one in words: `seven`, `twenty-five`, `three quarters`. */
function toNumeral(text: string): string | undefined {
  const [first = '', second, more] = text.split(/[ -]/);
  const number = numerals.get(first) ?? (text === 'half' ? 1 : undefined);
  if (number === undefined || more !== undefined) return undefined;
  if (text === 'half') return '1/2';
  if (second === undefined) return String(number);
  const ones = units.indexOf(second);
  if (tens.includes(first) && ones > 0 && ones < 10) return String(number + ones);
  const part = parts.indexOf(
    second
      .replace(/^halves$/, 'half')
      .replace(/^fourth/, 'quarter')
      .replace(/s$/, ''),
  );
  return part < 0 ? undefined : `${number}/${part + 2}`;
}

const none =
  /^(?:none|(?:there (?:is|are) )?no (?:real )?(?:solutions?|roots?|values?|such (?:number|integer|value)s?)(?: exists?)?|empty(?: set)?)$/;

/** What words say in symbols; undefined if they are only words. */
export function toSymbols(words: string): string | undefined {
  const clean = words.toLowerCase().trim();
  if (none.test(clean)) return '\\emptyset';
  if (/^(?:(?:the set of )?all real(?:s| numbers)|(?:all )?reals)$/.test(clean)) return '\\mathbb{R}';
  if (/^(?:infinitely many|infinite|infinity)(?: solutions)?$/.test(clean)) return '\\infty';
  return toNumeral(clean);
}

/** The items of a list of words, as `Monday and Tuesday`, in their order; undefined if it is none. */
export function splitWords(text: string): readonly string[] | undefined {
  const words = foldWords(text).split(/, ?(?:and )?| and /);
  return words.length > 1 && words.length <= 20 && words.every((word) => /^[a-z][a-z' -]{2,40}$/i.test(word)) ? words : undefined;
}

const remainder = /(?<=\d) ?(?:\\text ?\{ ?|, ?)?\b(?:R|r|rem|remainder)\.? ?(?:of )?\}? ?(?=\d)/g;

/** Without layout, articles and a full stop; without case where it is words. */
export function foldWords(text: string): string {
  const clean = text
    .replace(remainder, ' R ')
    .replace(/\\(?:text|textbf|textit|textrm|mathrm|mbox|mathbf|emph)\s?\{([^{}]*)\}/g, ' $1 ')
    .replace(/\\(?:left|right|displaystyle|quad|qquad)(?![a-zA-Z])|\\[,;!: ]|[$~*"]/g, ' ')
    .replace(/\\[dt]frac/g, '\\frac')
    .trim()
    .replace(/[.。]$/, '')
    .replace(/^(\\?)\{([^{}]*)\}$/, (all, slash: string, inner: string) => (slash === '' ? inner : all))
    .replace(/^\(([a-zA-Z])\)$/, '$1')
    .trim();
  if (!/^[a-zA-Z][a-zA-Z' -]*$/.test(clean))
    return clean.replace(/\s+/g, '').replace(/(?<=\d)([ap])\.?m\.?$/i, (_, half: string) => `${half.toLowerCase()}m`);
  // Case counts in symbols, such as CO, and not in words and choices.
  const folded = (/[a-zA-Z]{3}|^[a-eA-E]$|^no$/i.test(clean) ? clean.toLowerCase() : clean)
    .replace(/^(?:the|an?) (?=.)/, '')
    .replace(/\s+/g, ' ');
  return folded === 'dne' ? 'does not exist' : folded;
}

const nouns = [
  ...[
    'vertex',
    'center',
    'centre',
    'slope',
    'radius',
    'area',
    'perimeter',
    'volume',
    'length',
    'width',
    'height',
    'point',
    'focus',
    'rank',
  ],
  ...['minimum', 'maximum', 'max', 'min', 'mean', 'median', 'mode', 'sum', 'product', 'total', 'value', 'distance', 'speed', 'time'],
  ...['probability', 'angle', 'range', 'domain', 'remainder', 'number'],
];
const called = new RegExp(
  `^(?:\\\\text ?\\{ ?)?(?:the )?(?:${nouns.join('|')})(?: is|:| =)? ?\\}? ?(?=[-\\d([]|\\\\(?:frac|sqrt|langle))`,
  'i',
);
const extreme = /^\\(?:max|min|sup|inf) ?= ?/;
/** `(x, y) = ` before several pairs. */
const tupleNames = /\( ?[a-z](?: ?, ?[a-z]){1,5} ?\) ?(?:=|\\in(?![a-z])) ?(?=\()/g;

/** `\text{vertex } (2, 5)`, `\max = 9`, and `(x, y) = (1, 2), (3, 4)`: only the values. */
export function withoutNames(text: string): string {
  const values = text.replace(tupleNames, '');
  const isSeveral = values !== text && values.split('(').length > 2 && !/[a-z]/i.test(values.replace(/\\[a-z]+/g, ''));
  return (isSeveral ? values : text).replace(called, '').replace(extreme, '');
}
