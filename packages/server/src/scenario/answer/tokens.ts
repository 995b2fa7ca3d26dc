// Splits LaTeX or plain text of a short answer into tokens. Layout (spaces, \left, \displaystyle, fonts) is dropped.

export type MathToken =
  | { readonly kind: 'number'; readonly text: string }
  | { readonly kind: 'name'; readonly text: string }
  | { readonly kind: 'command'; readonly text: string }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'mark'; readonly text: string };

const maxTokens = 2000;

/** Unicode that people and models write, in LaTeX. */
const replacements: readonly (readonly [RegExp, string])[] = [
  [/[−–—‐‑]/g, '-'],
  [/[×✕]/g, '\\times '],
  [/[·∙⋅]/g, '\\cdot '],
  [/÷/g, '/'],
  [/π/g, '\\pi '],
  [/θ/g, '\\theta '],
  [/∞/g, '\\infty '],
  [/√\s*\(/g, 'sqrt('],
  [/√\s*(\d+|[a-z])/gi, '\\sqrt{$1}'],
  [/≤/g, '\\le '],
  [/≥/g, '\\ge '],
  [/≠/g, '\\ne '],
  [/∪/g, '\\cup '],
  [/∩/g, '\\cap '],
  [/∈/g, '\\in '],
  [/±/g, '\\pm '],
  [/∅/g, '\\emptyset '],
  [/°/g, '^\\circ '],
  [/²/g, '^2'],
  [/³/g, '^3'],
  [/½/g, '\\frac{1}{2}'],
  [/[\u00a0\u2009\u202f]/g, ' '],
];

/** Commands that change how something looks, and nothing else. */
const layout =
  /\\(?:left|right|[bB]igg?[lr]?|displaystyle|textstyle|scriptstyle|limits|nolimits|quad|qquad|hspace\{[^{}]*\}|phantom\{[^{}]*\}|,|;|:|!|>|\s)(?![a-zA-Z])/g;
const fonts = /\\(?:mathbf|boldsymbol|mathit|mathsf|mathtt|bm|mathcal|ensuremath)(?![a-zA-Z])/g;

export function normaliseText(text: string): string {
  let clean = text.slice(0, 4 * maxTokens);
  clean = clean.replaceAll('\\\\', ' \\newline ');
  for (const [pattern, latex] of replacements) clean = clean.replace(pattern, latex);
  return clean
    .replace(/\\[()[\]]|\$/g, (mark) => (mark.startsWith('\\') || mark === '$' ? ' ' : mark))
    .replace(/(\d)\s*\{,\}\s*(?=\d{3})/g, '$1')
    .replace(/(\d)\\[,;!]\s*(?=\d{3}(?!\d))/g, '$1')
    .replace(layout, ' ')
    .replace(fonts, ' ')
    .replace(/~/g, ' ');
}

const pattern =
  /\s+|(?<number>(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+))|\\(?:text|textbf|textit|textrm|mathrm|mbox|operatorname\*?|mathbb)\s*\{(?<text>[^{}]*)\}|\\begin\{(?<begin>\w+\*?)\}(?:\{[lcr| ]*\})?|\\end\{(?<end>\w+\*?)\}|\\(?<command>[a-zA-Z]+|[{}%$|\\&#_])|(?<word>[a-zA-Z]+)|(?<mark>\*\*|<=|>=|!=|\.\.\.|.)/gsu;

/** Undefined if there are too many. */
export function tokenise(text: string): readonly MathToken[] | undefined {
  const tokens: MathToken[] = [];
  for (const { groups = {} } of normaliseText(text).matchAll(pattern)) {
    if (tokens.length > maxTokens) return undefined;
    const { number, text: words, begin, end, command, word, mark } = groups;
    if (number !== undefined) tokens.push({ kind: 'number', text: number.replaceAll(',', '') });
    else if (words !== undefined) tokens.push({ kind: 'text', text: words.trim() });
    else if (begin !== undefined) tokens.push({ kind: 'command', text: `begin ${begin}` });
    else if (end !== undefined) tokens.push({ kind: 'command', text: `end ${end}` });
    else if (command !== undefined) tokens.push(toCommand(command));
    else if (word !== undefined) tokens.push(...splitWord(word));
    else if (mark !== undefined) tokens.push({ kind: 'mark', text: marks[mark] ?? mark });
  }
  return tokens;
}

const marks: Readonly<Record<string, string>> = { '**': '^', '<=': '\\le', '>=': '\\ge', '!=': '\\ne' };

/** Commands that are the same as a mark. */
const commandMarks: Readonly<Record<string, string>> = {
  ...{ times: '*', cdot: '*', ast: '*', div: '/', le: '\\le', leq: '\\le', leqslant: '\\le', ge: '\\ge', geq: '\\ge', geqslant: '\\ge' },
  ...{ ne: '\\ne', neq: '\\ne', lt: '<', gt: '>', vert: '|', mid: '|', lvert: '|', rvert: '|', '|': '|', '%': '%' },
  ...{ lbrace: '\\{', rbrace: '\\}', '{': '\\{', '}': '\\}', lbrack: '[', rbrack: ']', '&': '&' },
};

function toCommand(name: string): MathToken {
  const mark = commandMarks[name];
  return mark === undefined ? { kind: 'command', text: name } : { kind: 'mark', text: mark };
}

/** Words that mean the same without a backslash. */
export const plainWords: ReadonlySet<string> = new Set([
  ...['sqrt', 'cbrt', 'sin', 'cos', 'tan', 'cot', 'sec', 'csc', 'sinh', 'cosh', 'tanh', 'arcsin', 'arccos', 'arctan', 'asin', 'acos'],
  ...['atan', 'ln', 'log', 'lg', 'exp', 'abs', 'floor', 'ceil', 'pi', 'infinity', 'infty', 'inf', 'oo', 'theta', 'alpha', 'beta'],
]);

/** One letter is a symbol; two or three that are no known word are a product of symbols; more are a word. */
function splitWord(word: string): MathToken[] {
  if (plainWords.has(word.toLowerCase()) && word.length > 1) return [{ kind: 'command', text: word.toLowerCase() }];
  if (word.length > 3) return [{ kind: 'text', text: word }];
  return [...word].map((text) => ({ kind: 'name', text }));
}
