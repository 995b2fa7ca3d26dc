// A schema by its shape: zod 4 of any minor version fits, and so does any object with the same two methods. Code that receives a
// schema from a user asks for this type, so that the user's copy of zod need not be ours.

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
