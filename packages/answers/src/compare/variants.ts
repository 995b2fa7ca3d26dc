// The readings of an answer as a whole: both sides of `\sqrt 2 \approx 1.41`, a choice and its text, a numeral with its base.

export interface Variant {
  /** A label is compared as text; a rounded number is also the exact one that it stands for. */
  readonly kind: 'answer' | 'rounded' | 'label';
  readonly text: string;
}

export function toVariants(text: string): readonly Variant[] {
  const [first = '', ...rest] = text.split(/\\approx(?![a-zA-Z])|\\simeq(?![a-zA-Z])|≈/);
  const last = rest.at(-1);
  if (last !== undefined) {
    const rounded: Variant = { kind: 'rounded', text: last };
    // What is before the sign may be only a name.
    return /^[\s$(]*(?:[a-zA-Z](?:_\w)?[\s$]*)?$/.test(first) ? [rounded] : [{ kind: 'answer', text: first }, rounded];
  }
  const [, said] = /^[\s$]*[A-Z][a-zA-Z' ]{2,80} (?:is|are|equals|was) (.*)$/s.exec(text) ?? [];
  const others = [said, toCount(text), ...toFamilies(text)].filter((other) => other !== undefined);
  return [{ kind: 'answer', text }, ...choiceVariants(text), ...others.map((other) => ({ kind: 'answer', text: other }) as const)];
}

const counts =
  /^[\s$]*(?:(?<called>[CP]) ?\( ?(?<n>\d{1,4}) ?, ?(?<k>\d{1,4}) ?\)|(?:\{ ?\})?[_^] ?\{?(?<all>\d{1,4})\}? ?(?<kind>[CP])_ ?\{?(?<some>\d{1,4})\}?)[\s$.]*$/;

/** `C(5,2)` and `{}_5C_2`. */
function toCount(text: string): string | undefined {
  const { called, kind = called, n, all = n, k, some = k } = counts.exec(text)?.groups ?? {};
  if (kind === undefined) return undefined;
  return kind === 'C' ? `\\binom{${all}}{${some}}` : `\\frac{${all}!}{(${all}-${some})!}`;
}

const maxFamilyLength = 300;

/** `\pi + 2n\pi, n \in \mathbb{Z}` holds for any name of `n`. */
function toFamilies(text: string): readonly string[] {
  const at = Math.max(text.lastIndexOf('\\in'), text.lastIndexOf('∈'));
  if (at < 0 || text.length > maxFamilyLength || !/^(?:\\in|∈) {0,3}(?:\\mathbb ?\{?Z\}?|ℤ)[.)$ ]{0,4}$/.test(text.slice(at))) return [];
  const head = text.slice(0, at).trimEnd();
  const [name = '', before = ''] = [head.at(-1), head.at(-2)];
  if (!/[a-z]/.test(name) || /[a-zA-Z]/.test(before)) return [];
  const body = head.slice(0, -1).replace(/\\text ?\{[a-z ,]{1,20}\} {0,3}$/, '');
  const end = [...body].findLastIndex((mark) => !',;\\( '.includes(mark)) + 1;
  const pattern = new RegExp(`(?<![a-zA-Z\\\\])${name}(?![a-zA-Z])`, 'g');
  return ['k', 'n', 'm'].map((other) => body.slice(0, end).replace(pattern, other));
}

/** `(B) 24` is B and also 24. */
function choiceVariants(text: string): readonly Variant[] {
  const [, only] = /^[\s$]*(?:\\(?:text|textbf|mathrm|mathbf)\s?\{)?\s?\(?([A-J])\)?\s?\}?[\s$.]*$/.exec(text) ?? [];
  if (only !== undefined) return [{ kind: 'label', text: only }];
  const [, bracketed, dotted, rest] =
    /^[\s$]*(?:\\(?:text|textbf|mathrm|mathbf)\s?\{)?\s?(?:\(([A-J])\)|([A-J])[.)])(?:\s?\}?\s[\s\\]*|\s?\}?\\[\s,;:!quad]+|\s\}[\s\\]*)(.*)$/s.exec(
      text,
    ) ?? [];
  const letter = bracketed ?? dotted;
  // Two letters are no choice.
  if (letter === undefined || rest === undefined || /^[\s,]*(?:and|or)?\s?\(?[A-J]\)?[\s.}]*$/.test(rest)) return [];
  const label: Variant = { kind: 'label', text: letter };
  return [label, { kind: 'answer', text: rest }];
}

const numeral = /^[\s$]*\(?([0-9A-F]{1,200}(?:\.[0-9A-F]{1,200})?)\)?_\s?\{?\s?(?:\\text\s?\{)?(\d{1,2}|[a-z]{3,7})\}?\}?[\s$.]*$/;
const digitsOnly = /^[\s$]*([0-9A-F]{1,200}(?:\.[0-9A-F]{1,200})?)[\s$.]*$/;

/** Numerals as `1011_2` are compared as digits: a base may be left out, but not be another one. Undefined if neither is one. */
export function isSameNumeral(given: string, truth: string): boolean | undefined {
  const [a, b] = [numeral.exec(given), numeral.exec(truth)];
  if (a === null && b === null) return undefined;
  if (a && b) return a[1] === b[1] && baseOf(a[2]) === baseOf(b[2]);
  return (a ?? b)?.[1] === digitsOnly.exec(a ? truth : given)?.[1];
}

const bases: Readonly<Record<string, string>> = {
  ...{ two: '2', three: '3', four: '4', five: '5', six: '6', seven: '7', eight: '8', nine: '9', ten: '10', twelve: '12', sixteen: '16' },
};
const baseOf = (text = ''): string => bases[text] ?? text;

const clock = /^[\s$]*(?:\\text\s?\{)?(\d{1,2}):(\d{2})\s?(?:\\text\s?\{)?\s?(?:([ap])\.?\s?m\.?)?\}?[\s$.]*$/i;

/** Times of day: a half may be left out, but not be the other one. Undefined unless both are times, and one has its half. */
export function isSameTime(given: string, truth: string): boolean | undefined {
  const [a, b] = [clock.exec(given), clock.exec(truth)];
  if (!a || !b || (a[3] === undefined && b[3] === undefined)) return undefined;
  const isSameHalf = a[3] === undefined || b[3] === undefined || a[3].toLowerCase() === b[3].toLowerCase();
  return Number(a[1]) === Number(b[1]) && a[2] === b[2] && isSameHalf;
}
