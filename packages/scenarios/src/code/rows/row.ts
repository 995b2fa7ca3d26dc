// What all kinds of rows share: JSON in strings, and tests as lists of inputs and outputs.

import { z } from 'zod';
import type { Row } from '../../row.ts';
import { parseExact, renderExact } from '../output/exact-json.ts';

/** A test of a task. */
export interface RowTest {
  readonly input: string;
  readonly output: string;
  readonly alternatives?: readonly string[];
}

/** Throws an Error that names the field. */
export function parseField(row: Row, field: string): unknown {
  const value = row[field];
  if (typeof value !== 'string') return value;
  try {
    return parseExact(value);
  } catch (cause) {
    throw new Error(`${field} is not JSON: ${value.slice(0, 80)}`, { cause });
  }
}

/** Lines may be a list. */
export const textOf = (value: unknown): string =>
  Array.isArray(value) ? value.map(textOf).join('\n') : typeof value === 'string' ? value : renderExact(value);

export const pairs = z.array(z.object({ input: z.string(), output: z.string() }));

const columns = z.object({ input: z.array(z.string()), output: z.array(z.string()) });

export function fromColumns(value: unknown): RowTest[] {
  const { data } = columns.safeParse(value);
  if (data && data.input.length !== data.output.length)
    throw new Error(`the tests have ${data.input.length} inputs and ${data.output.length} outputs`);
  return data?.input.map((input, at) => ({ input, output: data.output[at] ?? '' })) ?? [];
}

/** `2.0 seconds`, 2, `{ seconds: 2, nanos: 0 }`. */
export function secondsOf(value: unknown): number | undefined {
  if (typeof value === 'number' && value > 0) return value;
  if (typeof value === 'string') return secondsOf(Number.parseFloat(value));
  const { data } = z.object({ seconds: z.coerce.number().optional(), nanos: z.number().optional() }).safeParse(value);
  return data && secondsOf((data.seconds ?? 0) + (data.nanos ?? 0) / 1e9);
}

/** `256.0 megabytes` or 256. */
export function mebibytesOf(value: unknown): number | undefined {
  const size = typeof value === 'string' ? Number.parseFloat(value) : value;
  return typeof size === 'number' && size >= 16 ? Math.round(size) : undefined;
}
