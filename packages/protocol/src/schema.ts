// A schema by its shape: zod 4 of any minor version fits, and so does any object with the same two methods. Code that receives a
// schema from a user asks for this type, so that the user's copy of zod need not be ours.
// `toFieldFaults` says what is wrong in a value for the person who wrote it: what is missing, what is unknown and what was probably meant.

import { didYouMean } from './plain/nearest.ts';

export interface SchemaIssue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
  /** zod's kind of issue, such as `unrecognized_keys`. */
  readonly code?: string | undefined;
  /** The unknown fields of `unrecognized_keys`. */
  readonly keys?: readonly string[];
  /** The type that `invalid_type` wants. */
  readonly expected?: string | undefined;
  /** The issues of each member of `invalid_union`. */
  readonly errors?: readonly (readonly SchemaIssue[])[] | undefined;
}

export type SchemaResult<T> =
  | { readonly success: true; readonly data: T }
  | { readonly success: false; readonly error: { readonly issues: readonly SchemaIssue[] } };

export interface Schema<T = unknown> {
  /** zod's description of the schema. The names of its fields are read from it, if it is there. */
  readonly def?: unknown;
  safeParse(value: unknown): SchemaResult<T>;
  /** Like `safeParse`, for a schema with asynchronous checks. */
  safeParseAsync(value: unknown): Promise<SchemaResult<T>>;
}

export interface FieldFault {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** What the issues are about. Without them, nothing is called missing, and no field is suggested. */
export interface CheckedValue {
  readonly value?: unknown;
  /** A zod schema of any copy; of any other, no field is known. */
  readonly schema?: unknown;
}

/** At most `most` faults of one issue. */
export function toFieldFaults(issue: SchemaIssue, { value, schema }: CheckedValue, most = 20): FieldFault[] {
  const { path, code, keys, message } = issue;
  if (code === 'unrecognized_keys' && keys) {
    const known = fieldsAt(schema, path);
    return keys.slice(0, most).map((key) => ({ path: [...path, key], message: `unknown field${didYouMean(key, known)}` }));
  }
  const isMissing = path.length > 0 && typeCodes.includes(code ?? '') && value !== undefined && valueAt(value, path) === undefined;
  if (isMissing) return [{ path, message: 'is missing' }];
  const described = code === 'invalid_union' ? describeUnion(issue) : message;
  return [{ path, message: described.replace('expected record', 'expected object') }]; // as JSON calls it
}

/** One line that names every field at fault. */
export function describeIssues(issues: readonly SchemaIssue[], checked: CheckedValue = {}): string {
  const faults = issues.flatMap((issue) => toFieldFaults(issue, checked));
  return faults.map(({ path, message }) => (path.length === 0 ? message : `${path.map(String).join('.')}: ${message}`)).join('; ');
}

const typeCodes: readonly string[] = ['invalid_type', 'invalid_union', 'invalid_value'];

/** A union says only that nothing fits; its members say what would. */
function describeUnion({ message, errors = [] }: SchemaIssue): string {
  const expected = errors.flat().flatMap((one) => (one.path.length === 0 && one.expected !== undefined ? [one.expected] : []));
  return expected.length === 0 ? message : `${message}: expected ${[...new Set(expected)].join(' or ')}`;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((at, part) => read(at, part), value);
}

/** The fields that an object has at this place of a zod schema; of a union, those of all its members. */
function fieldsAt(schema: unknown, path: readonly PropertyKey[]): string[] {
  const [part, ...rest] = path;
  const objects = membersOf(schema);
  if (part === undefined) return [...new Set(objects.flatMap((one) => Object.keys(read(one, 'shape') ?? {})))];
  return objects.flatMap((one) => {
    const def = read(one, 'def');
    return fieldsAt(read(read(one, 'shape'), part) ?? read(def, 'element') ?? read(def, 'valueType'), rest);
  });
}

/** The schema without what only wraps it: defaults, optionals, transforms, unions. */
function membersOf(schema: unknown): unknown[] {
  const def = read(schema, 'def');
  if (typeof def !== 'object' || def === null) return [];
  const inner = [read(def, 'innerType'), read(def, 'in'), read(def, 'out'), ...toList(read(def, 'options'))].filter(
    (one) => one !== undefined,
  );
  return inner.length === 0 ? [schema] : inner.flatMap(membersOf);
}

function toList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function read(value: unknown, key: PropertyKey): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}
