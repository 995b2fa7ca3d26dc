// JSON read as Python reads it: 1.0 stays a float, an integer keeps all its digits, and keys keep their order. JavaScript's objects put
// keys that look like integers first, so objects become Maps.

import { isMapping, rememberExact, toValue, type Value } from './values/values.ts';

const token = /[ \t\n\r]*(?:([{}[\],:])|("(?:[^"\\]|\\.)*")|(-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?)|(true|false|null))/y;

/** Python refuses longer integers. */
const mostDigits = 4300;

/** Throws a SyntaxError for text that is not JSON. */
export function parseExactJson(text: string): Value {
  JSON.parse(text); // refuses what is not JSON, with the place
  const reader = new RegExp(token);
  const next = (): RegExpExecArray => {
    const match = reader.exec(text);
    if (!match) throw new SyntaxError('not JSON');
    return match;
  };
  const read = (match: RegExpExecArray): Value => {
    const [, sign, string, number, fraction, exponent] = match;
    if (string !== undefined) return toValue(JSON.parse(string));
    if (number !== undefined)
      return fraction === undefined && exponent === undefined && number.length <= mostDigits ? BigInt(number) : Number(number);
    if (sign === '[') return readList();
    if (sign === '{') return readObject();
    return toValue(JSON.parse(match[0]));
  };
  const readList = (): Value => {
    const items: Value[] = [];
    for (let match = next(); match[1] !== ']'; match = next()) if (match[1] !== ',') items.push(read(match));
    return items;
  };
  const readObject = (): Value => {
    const entries = new Map<Value, Value>();
    for (let match = next(); match[1] !== '}'; match = next()) {
      if (match[1] === ',') continue;
      const key = read(match);
      next();
      entries.set(key, read(next()));
    }
    return entries;
  };
  return read(next());
}

/** What JSON.parse does not keep: a float without a fraction, many digits, an exponent, a key that looks like an integer. */
const needsCare = /\d\.0+(?!\d)|\d{16}|\d[eE]|"\d+"\s*:/;

/** JSON.parse, whose objects a template renders exactly as their text said. */
export function parseRemembered(text: string): unknown {
  const data: unknown = JSON.parse(text);
  if (needsCare.test(text)) remember(data, parseExactJson(text));
  return data;
}

function remember(data: unknown, exact: Value): void {
  if (Array.isArray(data) && Array.isArray(exact)) for (const [index, item] of data.entries()) remember(item, exact[index] ?? null);
  else if (typeof data === 'object' && data !== null && isMapping(exact)) {
    rememberExact(data, exact);
    for (const [key, item] of Object.entries(data)) remember(item, exact.get(key) ?? null);
  }
}
