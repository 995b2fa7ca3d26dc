// Writes a short answer in one way: Unicode as LaTeX, numbers without separators, mixed and repeating numbers as fractions, layout dropped.
// Every pattern is linear in the text.

/** A longer answer is compared as text. */
export const maxAnswerLength = 4000;

/** Unicode that people and models write, in LaTeX. */
const unicode: Readonly<Record<string, string>> = {
  ...{ '−': '-', '–': '-', '—': '-', '‐': '-', '‑': '-', '×': '\\times ', '✕': '\\times ', '·': '\\cdot ', '∙': '\\cdot ', '⋅': '\\cdot ' },
  ...{ '÷': '/', π: '\\pi ', θ: '\\theta ', α: '\\alpha ', β: '\\beta ', λ: '\\lambda ', '∞': '\\infty ', '≤': '\\le ', '≥': '\\ge ' },
  ...{ '≠': '\\ne ', '∪': '\\cup ', '∩': '\\cap ', '∈': '\\in ', '±': '\\pm ', '∅': '\\emptyset ', '°': '^\\circ ' },
  ...{ '½': '\\frac{1}{2}', '¼': '\\frac{1}{4}', '¾': '\\frac{3}{4}', '⅓': '\\frac{1}{3}', '⅔': '\\frac{2}{3}', '\u00a0': ' ' },
  ...{
    '\u2009': ' ',
    '\u202f': ' ',
    '≈': '\\approx ',
    '→': '\\to ',
    '√': '\\sqrt ',
    ℝ: '\\mathbb{R}',
    '∖': '\\setminus ',
    '⟨': '\\langle ',
  },
  ...{ '⟩': '\\rangle ', '…': '\\ldots ', '≡': '\\equiv ', '“': '', '”': '', '€': '', '£': '', '¥': '', '\u200b': '' },
};
const unicodePattern = new RegExp(`[${Object.keys(unicode).join('')}]`, 'gu');

const raised = /[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+/g;

/** Digits above the line: `10⁻³`. */
export const withPowers = (text: string): string => text.replace(raised, toPower);

const toPower = (marks: string): string => `^{${marks.normalize('NFKC').replace('\u2212', '-')}}`;

/** Commands that change how something looks, and nothing else. */
const layout =
  /\\(?:left|right|middle|[bB]igg?[lrm]?|displaystyle|textstyle|scriptstyle|limits|nolimits|quad|qquad|mathstrut)(?![a-zA-Z])|\\[,;:!>\s]|\\(?:hspace|phantom|label|tag)\*?\{[^{}]{0,80}\}|\\left\.|\\right\./g;
const fonts = /\\(?:mathbf|boldsymbol|mathit|mathsf|mathtt|bm|mathcal|mathscr|ensuremath|pmb)(?![a-zA-Z])/g;
const separated = /(?<![\d.\w])\d{1,3}(?:(?:\{,\}|,\\!|\\[,;! ]|~| )\d{3})+(?![\d\w/]| ?\/)/g;
const repeating = /(?<![\d.])(\d{0,30})\.(\d{0,30})(?:\\(?:overline|bar|dot)\s?\{(\d{1,30})\}|\\dot\s?(\d))/g;
const continued = /(?<![\d.])(\d{1,30})\.(\d{2,30})(?:\\l?dots|\\cdots|\.{3})/g;
const scientific = /(?<![\w.\\}])(\d{1,30}(?:\.\d{1,30})?|\.\d{1,30})[eE]([+-]?\d{1,3})(?!\w)/g;
const mixed = /(?<![\w.,/^}{)]|[\w)}] )(\d{1,30}) +(\d{1,30}) ?\/ ?(\d{1,30})(?![\w.])/g;

export function normaliseText(text: string): string {
  return withPowers(text.slice(0, 2 * maxAnswerLength))
    .replaceAll('\\\\', ' \\newline ')
    .replace(unicodePattern, (mark) => unicode[mark] ?? mark)
    .replaceAll('\\$', ' ')
    .replace(/\\[()[\]]|\$/g, ' ')
    .replace(separated, (number) => number.replace(/\D/g, ''))
    .replace(/\\(?:left|right)(?:\.|(?![a-zA-Z]))/g, ' ')
    .replace(/\\(?:text|mathrm|operatorname) ?\{ ?(cis|mod) ?\}/g, (_, name: string) => (name === 'mod' ? '\\bmod ' : '\\cis '))
    .replace(repeating, (_, whole: string, part: string, braced?: string, digit?: string) => toFraction(whole, part, braced ?? digit ?? ''))
    .replace(continued, (all: string, whole: string, part: string) => continueDigits(whole, part) ?? all)
    .replace(/(\d) ?(?:to|\\text ?\{ ?to ?\}) ?(?=\d)/g, '$1:')
    .replace(/(?<![\d.,])(\d{1,30}) ?(?:\\text ?\{ ?)?(?: out of|\bout of| in) ?\}? ?(\d{1,30})(?![\d.,])/g, '\\frac{$1}{$2}')
    .replace(/(\d)(?:\^? ?\{? ?\\text ?\{ ?(?:st|nd|rd|th) ?\} ?\}?|\^ ?\{ ?(?:st|nd|rd|th) ?\})$/, '$1')
    .replace(/\\mathbb ?\{? ?([PE]) ?\}?(?= ?[([])/g, '$1')
    .replace(/(?<=\d) x (?=\d)/g, '\\times ')
    .replace(scientific, '($1*10^{$2})')
    .replace(mixed, '($1+$2/$3)')
    .replace(layout, ' ')
    .replace(fonts, ' ')
    .replaceAll('~', ' ')
    .replace(/\s+/g, ' ')
    .trim();
}

/** 0.1666… as a fraction, where 6 repeats. */
function toFraction(whole: string, part: string, period: string): string {
  const shift = 10n ** BigInt(part.length);
  const top = BigInt(`${whole}${part}${period}`) - BigInt(`${whole}${part}` || '0');
  return `(${top}/${shift * (10n ** BigInt(period.length) - 1n)})`;
}

/** 0.3333… repeats what its digits end with at least twice. */
function continueDigits(whole: string, part: string): string | undefined {
  for (let length = 1; 2 * length <= part.length; length += 1) {
    const period = part.slice(-length);
    if (part.slice(0, -length).endsWith(period)) return toFraction(whole, part.slice(0, -2 * length), period);
  }
  return undefined;
}
