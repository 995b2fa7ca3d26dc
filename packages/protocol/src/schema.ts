// A schema by its shape: zod 4 of any minor version fits, and so does any object with the same two methods. Code that receives a
// schema from a user asks for this type, so that the user's copy of zod need not be ours.

export interface SchemaIssue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
  /** zod's kind of issue, such as `unrecognized_keys`. */
  readonly code?: string | undefined;
  /** The unknown fields of `unrecognized_keys`. */
  readonly keys?: readonly string[];
}

export type Parsed<T> =
  | { readonly success: true; readonly data: T }
  | { readonly success: false; readonly error: { readonly issues: readonly SchemaIssue[] } };

export interface Schema<T = unknown> {
  safeParse(value: unknown): Parsed<T>;
  /** Like `safeParse`, for a schema with asynchronous checks. */
  safeParseAsync(value: unknown): Promise<Parsed<T>>;
}

/** One line that names every field at fault. */
export function describeIssues(issues: readonly SchemaIssue[]): string {
  return issues.map(({ path, message }) => (path.length === 0 ? message : `${path.map(String).join('.')}: ${message}`)).join('; ');
}
