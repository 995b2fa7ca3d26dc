// Takes rows of data sets in place of tasks. Everything else is taken as a task.

import type { z } from 'zod';
import { isRow, toColumns } from '../../row.ts';
import { readRow } from '../../verifier/read-row.ts';
import { readSweRow } from './read-swe-row.ts';
import { kindOf, toTask } from './rows.ts';

/** For zod's `preprocess`: a row that cannot be used is an issue that names the field. */
export function fromRow(value: unknown, context: z.RefinementCtx): unknown {
  if (!isRow(value)) return value;
  const row = toColumns(value);
  const kind = kindOf(row);
  return kind === undefined ? row : readRow({ row, kind }, { read: (one) => toTask(one.row, one.kind), inThread: readSweRow }, context);
}
