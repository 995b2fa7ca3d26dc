// Reads a row of the swe scenario in a grader's thread, which loads the schemas of rows with the first one.

import type { RowReading } from '../../verifier/row-reading.ts';
import type { SweRow } from './row.ts';
import type { RowKind } from './rows.ts';

export async function readSweRow({ row, kind }: { readonly row: SweRow; readonly kind: RowKind }): Promise<RowReading> {
  const [{ tryRead }, { toTask }] = await Promise.all([import('../../verifier/row-reading.ts'), import('./rows.ts')]);
  return tryRead(() => toTask(row, kind));
}
