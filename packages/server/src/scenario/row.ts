// A row of a data set, as all scenarios read it: a column without a value is absent, whether the file leaves it out or writes null.

export type Row = Readonly<Record<string, unknown>>;

export const isRow = (value: unknown): value is Row => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Tables write null into the columns that other rows of the same file have. */
export const withoutNulls = (row: Row): Record<string, unknown> =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null && value !== undefined));
