// Text as Python writes and cuts it: white space, str() and repr() of values, json.dumps. JavaScript differs in each of them.

import { Callable, isMapping, Markup, Namespace, Tuple, Undefined, type Value } from './values.ts';

/** What str.isspace and \s in Python's re mean; JavaScript has U+FEFF more, and U+0085 and the separators from U+001C less. */
export const spaceClass = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
export const fullSpace = new RegExp(`^[${spaceClass}]+$`);
const leading = new RegExp(`^[${spaceClass}]+`);
const someSpace = new RegExp(`[${spaceClass}]`);
const isSpace = (unit: number): boolean =>
  unit < 128 ? unit === 32 || (unit >= 9 && unit <= 13) || (unit >= 28 && unit < 32) : someSpace.test(String.fromCharCode(unit));

export function trimStartSpace(text: string): string {
  return text.replace(leading, '');
}

export function trimEndSpace(text: string): string {
  let end = text.length;
  while (end > 0 && isSpace(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(0, end);
}

export function trimSpace(text: string): string {
  return trimEndSpace(trimStartSpace(text));
}

/** str(value), which is also what `{{ value }}` writes. */
export function toStr(value: Value): string {
  if (typeof value === 'string') return value;
  if (value instanceof Undefined) return '';
  if (value instanceof Markup) return value.text;
  return toRepr(value);
}

export function toRepr(value: Value): string {
  if (value === null) return 'None';
  if (typeof value === 'string') return quote(value);
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'number') return toFloatText(value);
  if (value instanceof Undefined) return 'Undefined';
  if (value instanceof Tuple)
    return value.items.length === 1 ? `(${toRepr(value.items[0] ?? null)},)` : `(${value.items.map(toRepr).join(', ')})`;
  if (Array.isArray(value)) return `[${value.map(toRepr).join(', ')}]`;
  if (isMapping(value)) return `{${[...value].map(([key, item]) => `${toRepr(key)}: ${toRepr(item)}`).join(', ')}}`;
  if (value instanceof Namespace) return `<Namespace ${toRepr(value.values)}>`;
  if (value instanceof Callable) return `<function ${value.name}>`;
  return '<LoopContext>';
}

/** The shortest digits that give the same float, with an exponent where Python uses one. */
function toFloatText(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (Object.is(value, -0)) return '-0.0';
  if (value === 0) return '0.0';
  const [digits = '', power = '0'] = value.toExponential().split('e');
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 16) return `${digits}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
  const plain = exponent < 0 ? value.toFixed(Math.max(digits.replace(/[-.]/g, '').length - 1 - exponent, 0)) : expand(digits, exponent);
  return plain.includes('.') ? plain : `${plain}.0`;
}

function expand(digits: string, exponent: number): string {
  const sign = digits.startsWith('-') ? '-' : '';
  const bare = digits.replace(/[-.]/g, '').padEnd(exponent + 1, '0');
  const rest = bare.slice(exponent + 1);
  return `${sign}${bare.slice(0, exponent + 1)}${rest === '' ? '' : `.${rest}`}`;
}

const unprintable = /[\p{C}\p{Z}]/u;
const shortEscapes: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\\': '\\\\' };

function quote(text: string): string {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  let quoted = '';
  for (const char of text) {
    if (char === mark) quoted += `\\${char}`;
    else if (shortEscapes[char] !== undefined) quoted += shortEscapes[char];
    else if (char !== ' ' && unprintable.test(char)) quoted += escapeCode(char.codePointAt(0) ?? 0);
    else quoted += char;
  }
  return mark + quoted + mark;
}

function escapeCode(code: number): string {
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, '0')}`;
  return code < 0x10000 ? `\\u${code.toString(16).padStart(4, '0')}` : `\\U${code.toString(16).padStart(8, '0')}`;
}

interface JsonStyle {
  readonly indent?: string | undefined;
  readonly ascii?: boolean;
  readonly comma?: string | undefined;
  readonly colon?: string | undefined;
  readonly sortKeys?: boolean;
}

/** json.dumps(value). Throws for what JSON has no form for, such as an undefined variable. */
export function toJson(value: Value, style: JsonStyle = {}): string {
  const comma = style.comma ?? (style.indent === undefined ? ', ' : ',');
  const colon = style.colon ?? ': ';
  const write = (item: Value, margin: string): string => {
    if (item === null) return 'null';
    if (typeof item === 'string') return toJsonText(item, style.ascii);
    if (typeof item === 'boolean' || typeof item === 'bigint') return String(item);
    if (typeof item === 'number') return toJsonNumber(item);
    if (item instanceof Tuple || Array.isArray(item)) {
      const rows = (item instanceof Tuple ? item.items : item).map((one) => write(one, margin + (style.indent ?? '')));
      return wrap('[]', rows, margin);
    }
    if (!isMapping(item)) throw new Error(`Object of type ${typeName(item)} is not JSON serializable`);
    const entries = style.sortKeys ? [...item].sort(([a], [b]) => (toStr(a) < toStr(b) ? -1 : 1)) : [...item];
    const rows = entries.map(([key, one]) => `${toKey(key, style.ascii)}${colon}${write(one, margin + (style.indent ?? ''))}`);
    return wrap('{}', rows, margin);
  };
  const wrap = ([open = '', close = '']: string, rows: readonly string[], margin: string): string => {
    if (rows.length === 0) return open + close;
    if (style.indent === undefined) return open + rows.join(comma) + close;
    const inner = `\n${margin}${style.indent}`;
    return `${open}${inner}${rows.join(comma + inner)}\n${margin}${close}`;
  };
  return write(value, '');
}

function toKey(key: Value, ascii: boolean | undefined): string {
  if (typeof key === 'string') return toJsonText(key, ascii);
  if (key === null || typeof key === 'boolean' || typeof key === 'bigint' || typeof key === 'number') return `"${toJson(key)}"`;
  throw new Error(`keys must be str, int, float, bool or None, not ${typeName(key)}`);
}

function toJsonNumber(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? 'Infinity' : '-Infinity';
  return toFloatText(value);
}

const jsonEscapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\b': '\\b',
  '\f': '\\f',
};

/** A string as json.dumps writes it; unlike JSON.stringify, it leaves lone surrogates. */
export function toJsonText(text: string, ascii = false): string {
  if (ascii) return `"${text.replace(/["\\]|[^\x20-\x7e]/g, escapeUnit)}"`;
  if (text.isWellFormed()) return JSON.stringify(text); // many times faster than a callback for each sign
  // biome-ignore lint/suspicious/noControlCharactersInRegex: JSON escapes them
  return `"${text.replace(/["\\\x00-\x1f]/g, escapeUnit)}"`;
}

function escapeUnit(unit: string): string {
  return jsonEscapes[unit] ?? `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

export function typeName(value: Value): string {
  if (value === null) return 'NoneType';
  if (typeof value === 'string') return 'str';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'bigint') return 'int';
  if (typeof value === 'number') return 'float';
  if (value instanceof Undefined) return 'Undefined';
  if (value instanceof Tuple) return 'tuple';
  if (Array.isArray(value)) return 'list';
  if (isMapping(value)) return 'dict';
  if (value instanceof Namespace) return 'Namespace';
  return value instanceof Callable ? 'function' : 'LoopContext';
}
