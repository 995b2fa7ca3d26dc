// Splits a normalised short answer into tokens.

export interface MathToken {
  readonly kind: 'number' | 'name' | 'command' | 'text' | 'mark';
  readonly text: string;
}

const maxTokens = 2000;

const pattern =
  /\s+|(?<number>\d+(?:\.\d+)?|\.\d+)|\\(?:text|textbf|textit|textrm|mathrm|rm|mbox|operatorname\*?|mathbb)\s?\{(?<text>[^{}]*)\}|\\mathbb (?<letter>[A-Z])|\\begin\{(?<begin>\w+\*?)\}(?:\{[lcr| ]*\})?|\\end\{(?<end>\w+\*?)\}|\\(?<command>[a-zA-Z]+|[{}%$|\\&#_])|(?<word>[a-zA-Z]+)|(?<mark>\*\*|<=|>=|!=|\.\.\.|.)/gsu;

/** A thousand's comma: whether it separates digits or items. */
export type CommaReading = 'thousands' | 'items';

/** Undefined if there are too many. */
export function tokenise(text: string, commas: CommaReading): readonly MathToken[] | undefined {
  const tokens: MathToken[] = [];
  const clean = commas === 'thousands' ? joinThousands(text) : text;
  for (const match of clean.matchAll(pattern)) {
    if (tokens.length > maxTokens) return undefined;
    tokens.push(...toTokens(match[0], match.groups ?? {}));
  }
  return tokens;
}

/** `1,000` is one number, also in brackets if something else separates the items there. */
function joinThousands(text: string): string {
  return text.replace(/(?<![\d.,\w])\d{1,3}(?:,\d{3})+(?!\d|,\d)/g, (number, at: number) => {
    const isInBrackets =
      /[({[] ?$/.test(text.slice(Math.max(0, at - 2), at)) &&
      /^ ?(?:\\?[})\]]|$)/.test(text.slice(at + number.length, at + number.length + 3));
    return isInBrackets ? number : number.replaceAll(',', '');
  });
}

function toTokens(whole: string, groups: Readonly<Record<string, string | undefined>>): readonly MathToken[] {
  const { number, text, letter, begin, end, command, word, mark } = groups;
  if (number !== undefined) return [{ kind: 'number', text: number }];
  if (letter !== undefined || (text !== undefined && whole.startsWith('\\mathbb')))
    return [{ kind: 'command', text: `set ${letter ?? text?.trim()}` }];
  if (text !== undefined) return [toText(text.trim())];
  if (begin !== undefined) return [{ kind: 'command', text: `begin ${begin}` }];
  if (end !== undefined) return [{ kind: 'command', text: `end ${end}` }];
  if (command !== undefined) return [toCommand(command)];
  if (word !== undefined) return splitWord(word);
  return mark === undefined ? [] : [{ kind: 'mark', text: marks[mark] ?? mark }];
}

const marks: Readonly<Record<string, string>> = { '**': '^', '<=': '\\le', '>=': '\\ge', '!=': '\\ne' };

/** Commands that are the same as a mark. */
const commandMarks: Readonly<Record<string, string>> = {
  ...{ times: '*', cdot: '*', ast: '*', div: '/', le: '\\le', leq: '\\le', leqslant: '\\le', ge: '\\ge', geq: '\\ge', geqslant: '\\ge' },
  ...{ ne: '\\ne', neq: '\\ne', lt: '<', gt: '>', vert: '|', mid: '|', lvert: '|', rvert: '|', '|': '|', '%': '%', colon: ':' },
  ...{ lbrace: '\\{', rbrace: '\\}', '{': '\\{', '}': '\\}', lbrack: '[', rbrack: ']', '&': '&', langle: '(', rangle: ')' },
};

function toCommand(name: string): MathToken {
  const mark = commandMarks[name];
  return mark === undefined ? { kind: 'command', text: name } : { kind: 'mark', text: mark };
}

/** Words that mean the same without a backslash. */
const plainWords: ReadonlySet<string> = new Set([
  ...['sqrt', 'cbrt', 'sin', 'cos', 'tan', 'cot', 'sec', 'csc', 'sinh', 'cosh', 'tanh', 'arcsin', 'arccos', 'arctan', 'asin', 'acos'],
  ...['atan', 'ln', 'log', 'lg', 'exp', 'abs', 'floor', 'ceil', 'pi', 'infinity', 'infty', 'inf', 'oo', 'theta', 'alpha', 'beta'],
  ...['gcd', 'lcm', 'max', 'min', 'choose'],
]);
const connectives: ReadonlySet<string> = new Set(['and', 'or']);

function toText(text: string): MathToken {
  if (plainWords.has(text.toLowerCase())) return { kind: 'command', text: text.toLowerCase() };
  return /^[a-zA-Z]$/.test(text) ? { kind: 'name', text } : { kind: 'text', text };
}

/** One letter is a symbol; two or three that are no known word are a product of symbols; more are a word. */
function splitWord(word: string): MathToken[] {
  if (connectives.has(word.toLowerCase())) return [{ kind: 'text', text: word.toLowerCase() }];
  if (plainWords.has(word.toLowerCase()) && word.length > 1) return [{ kind: 'command', text: word.toLowerCase() }];
  if (word.length > 3) return [{ kind: 'text', text: word }];
  return [...word].map((text) => ({ kind: 'name', text }));
}
