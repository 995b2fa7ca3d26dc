// Takes rows of data sets in place of tasks. Everything else is taken as a task.

import type { z } from 'zod';
import { isRow, toColumns } from '../../row.ts';
import { readRow } from '../../verifier/read-row.ts';
import { findConverter, toCodeTask } from './convert-row.ts';
import { readCodeRow } from './read-code-row.ts';

/** For zod's `preprocess`: a row that cannot be used is an issue that names the field. */
export function fromRow(value: unknown, context: z.RefinementCtx): unknown {
  if (!isRow(value)) return value;
  const row = toColumns(value);
  return findConverter(row) === undefined ? row : readRow(row, { read: toCodeTask, inThread: readCodeRow }, context);
}
