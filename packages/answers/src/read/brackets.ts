// Splits tokens outside of brackets.

import type { MathToken } from './tokens.ts';

const closers: Readonly<Record<string, readonly string[]>> = { '(': [')', ']'], '[': [']', ')'], '{': ['}'], '\\{': ['\\}'] };
const openers = new Set(Object.keys(closers));
const allClosers = new Set(Object.values(closers).flat());

export const isCommand =
  (name: string) =>
  (token: MathToken): boolean =>
    token.kind === 'command' && token.text === name;
export const isMark =
  (text: string) =>
  (token: MathToken): boolean =>
    token.kind === 'mark' && token.text === text;

export function isSeparator(token: MathToken): boolean {
  if (token.kind === 'command') return token.text === 'land' || token.text === 'lor';
  return (
    (token.kind === 'mark' && (token.text === ',' || token.text === ';')) || (token.kind === 'text' && /^(?:and|or)$/i.test(token.text))
  );
}

/** Where the first bracket closes. Round and square ones may close each other, as in a half-open interval. */
export function closeOf(tokens: readonly MathToken[]): number | undefined {
  let depth = 0;
  for (const [at, token] of tokens.entries()) {
    if (token.kind !== 'mark') continue;
    if (openers.has(token.text)) depth += 1;
    if (allClosers.has(token.text)) depth -= 1;
    if (depth === 0) return at > 0 ? at : undefined;
  }
  return undefined;
}

export function splitAt(tokens: readonly MathToken[], isSplit: (token: MathToken) => boolean): readonly (readonly MathToken[])[] {
  const parts: MathToken[][] = [[]];
  let depth = 0;
  for (const token of tokens) {
    if (token.kind === 'mark' && openers.has(token.text)) depth += 1;
    if (token.kind === 'mark' && allClosers.has(token.text)) depth -= 1;
    if (token.kind === 'command' && token.text.startsWith('begin ')) depth += 1;
    if (token.kind === 'command' && token.text.startsWith('end ')) depth -= 1;
    if (depth === 0 && isSplit(token)) parts.push([]);
    else parts.at(-1)?.push(token);
  }
  return parts;
}
