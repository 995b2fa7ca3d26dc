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

/** One fault of an invalid request, as `details.faults` lists it. */
const requestFault = z.object({
  index: z.int().optional().describe('The rollout or task that it is in, for a request with many.'),
  path: z.string(),
  message: z.string(),
});
export type RequestFault = z.infer<typeof requestFault>;
export const requestFaults = z.array(requestFault);

/** As many faults are listed; a caller with more asks again for what follows the last of them. */
export const mostFaults = 1000;

export function toErrorBody(error: RolloutError): ErrorBody {
  const { code, message, blame, retryable, details } = error;
  return { error: { code, message, blame, retryable, ...definedOf({ details }) } };
}
