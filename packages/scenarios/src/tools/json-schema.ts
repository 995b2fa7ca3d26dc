// A JSON Schema from outside as a schema of ours: what a model reads stays as it was given, and arguments are checked as far as zod can.

import type { Schema } from '@millrace/protocol';
import { z } from 'zod';

/** The schema that was given, with `toJSONSchema` returning it unchanged. One that zod cannot express accepts every object. */
export function fromJsonSchema(given: Readonly<Record<string, unknown>>): Schema {
  const schema = toZod(given);
  return Object.freeze({
    safeParse: (value: unknown) => schema.safeParse(value),
    safeParseAsync: (value: unknown) => schema.safeParseAsync(value),
    toJSONSchema: () => given,
  });
}

function toZod(given: Readonly<Record<string, unknown>>): z.ZodType {
  try {
    return z.fromJSONSchema(given as Parameters<typeof z.fromJSONSchema>[0]);
  } catch {
    return z.record(z.string(), z.unknown()); // the tool itself checks its arguments
  }
}
