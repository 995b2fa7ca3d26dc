// What comes of reading a row of a data set, in a form that a thread can return.

import { messageOf } from '@millrace/protocol/plain';
import { z } from 'zod';

export type RowReading = { readonly task: unknown } | { readonly fault: string };

/** What the function makes of a row; what it throws is the fault. */
export function tryRead(work: () => unknown): RowReading {
  try {
    return { task: work() };
  } catch (error) {
    return { fault: error instanceof z.ZodError ? z.prettifyError(error) : messageOf(error) };
  }
}
