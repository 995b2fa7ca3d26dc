// Reads a row of the code scenario in a grader's thread, which loads the schemas of rows with the first one.

import type { Row } from '../../row.ts';
import type { RowReading } from '../../verifier/row-reading.ts';

export async function readCodeRow(row: Row): Promise<RowReading> {
  const [{ tryRead }, { toCodeTask }] = await Promise.all([import('../../verifier/row-reading.ts'), import('./convert-row.ts')]);
  return tryRead(() => toCodeTask(row));
}
