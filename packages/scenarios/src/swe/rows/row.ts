// What the rows of all data sets share: lists as JSON text, names of images, and the files of a patch.

import { z } from 'zod';
import type { Row } from '../../row.ts';

export type SweRow = Row;

/** A list, or a list as JSON text. Throws an Error that names the field. */
export function listOf(row: SweRow, field: string): string[] {
  const value = row[field] ?? [];
  const parsed = z.array(z.string()).safeParse(typeof value === 'string' ? parseJson(value, field) : value);
  if (parsed.success) return parsed.data;
  throw new Error(`${field} is not a list of test names`);
}

export function parseJson(text: string, field: string): unknown {
  if (text.trim() === '') return [];
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new Error(`${field} is not JSON: ${text.slice(0, 80)}`, { cause });
  }
}

/** The first of the fields that holds text. */
export function textOf(row: SweRow, ...fields: readonly string[]): string | undefined {
  for (const field of fields) {
    const value = row[field];
    if (typeof value === 'string' && value !== '') return value;
  }
  return undefined;
}

/** A name of an OCI registry as an address; a path or another address stays as it is. */
export function toImage(name: string): string {
  if (/^[a-z-]+:\/\//.test(name) || /^(\/|\.\.?\/)/.test(name) || /\.(sif|def)$/.test(name) || /^(docker|oci)-archive:/.test(name))
    return name;
  return `docker://${name}`;
}

/** Docker allows no double underscore in a name, so data sets replace it. */
export const toImageName = (prefix: string, instanceId: string, replacement: string): string =>
  `docker://${prefix}${instanceId.toLowerCase().replaceAll('__', replacement)}:latest`;

/** In quotes, a quote is escaped. */
const header = /^diff --git (?:a\/.*? b\/(.*)|"a\/(?:[^"\\\n]|\\.)*" "b\/((?:[^"\\\n]|\\.)*)")$/gm;

/** The paths after the change, and before it for deleted files. */
export function filesOf(patch: string): string[] {
  const names = [...patch.matchAll(header)].map(toName);
  if (names.length > 0) return [...new Set(names)];
  return [...new Set([...patch.matchAll(/^\+\+\+ (?:b\/([^\t\n]+)|"b\/((?:[^"\\\n]|\\.)*)")/gm)].map(toName))];
}

export const addedFilesOf = (patch: string): string[] =>
  [...patch.matchAll(header)].filter((match) => patch.startsWith('\nnew file mode ', match.index + match[0].length)).map(toName);

/** Git quotes names with odd characters as C does, each byte over 127 in octal digits. */
function toName([, plain, quoted = '']: RegExpMatchArray): string {
  if (plain !== undefined) return plain.trim();
  const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', a: '\x07', b: '\b', f: '\f', v: '\v' };
  const bytes = quoted.replace(/\\([0-7]{3}|.)/g, (_, code: string) =>
    code.length === 3 ? String.fromCharCode(Number.parseInt(code, 8)) : (escapes[code] ?? code),
  );
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

export const quote = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
