// Objects with optional fields, built without keys that are `undefined`, as `exactOptionalPropertyTypes` requires.

/** The fields of `T` that may be undefined become optional; the others stay required. */
export type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** A copy of `fields` without the undefined ones. */
export function definedOf<T extends object>(fields: T): Defined<T> {
  const defined: Record<string, unknown> = {};
  for (const key of Object.keys(fields) as (keyof T & string)[]) if (fields[key] !== undefined) defined[key] = fields[key];
  return defined as Defined<T>;
}
