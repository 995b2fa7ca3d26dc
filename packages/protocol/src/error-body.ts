// The body of an error reply, made from an error of the table.

import { z } from 'zod';
import { definedOf } from './plain/defined.ts';
import { blames, errorCodes, type RolloutError } from './plain/error.ts';

/** The body of every error reply of the HTTP API. */
export const errorBody = z.object({
  error: z.object({
    code: z.enum(errorCodes),
    message: z.string(),
    blame: z.enum(blames),
    retryable: z.boolean(),
    details: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('For an invalid request: `faults`, each with its `path`, its `message` and the `index` of the rollout or task.'),
  }),
});
export type ErrorBody = z.infer<typeof errorBody>;

export function toErrorBody(error: RolloutError): ErrorBody {
  const { code, message, blame, retryable, details } = error;
  return { error: { code, message, blame, retryable, ...definedOf({ details }) } };
}
