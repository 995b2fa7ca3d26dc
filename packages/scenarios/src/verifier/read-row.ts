// Reads rows of data sets without blocking the process: they hold JSON and archives as texts, which a caller can make slow to read. A short
// row is read at once, a longer one in a grader's thread.

import { z } from 'zod';
import { gradeInThread } from './graders.ts';
import { type RowReading, tryRead } from './row-reading.ts';

/** Of all texts of a row together. A compressed one may hold a thousand times as much. */
const maxShortLength = 4096;
/** A row of LiveCodeBench may hold a hundred megabytes of tests. */
const cpuMs = 20_000;

interface RowReader<Row> {
  /** Throws an Error that names the field. */
  read(row: Row): unknown;
  /** The same, for a thread: it must be in load/grader-thread.ts. */
  readonly inThread: (row: Row) => Promise<RowReading>;
}

/** For zod's `preprocess`: a row that cannot be used is an issue. A promise for a long row only. */
export function readRow<Row>(row: Row, { read, inThread }: RowReader<Row>, context: z.RefinementCtx): unknown {
  const finish = (reading: RowReading = { fault: 'the row takes too much time or memory to read' }): unknown => {
    if ('task' in reading) return reading.task;
    context.addIssue({ code: 'custom', message: reading.fault });
    return z.NEVER;
  };
  return isShort(row) ? finish(tryRead(() => read(row))) : gradeInThread(inThread, [row] as const, { cpuMs }).then(finish);
}

/** Whether all texts of a value together are short. */
export function isShort(value: unknown): boolean {
  let length = 0;
  const open: unknown[] = [value];
  while (open.length > 0 && length <= maxShortLength) {
    const one = open.pop();
    if (typeof one === 'object' && one !== null) for (const inner of Object.values(one)) open.push(inner);
    length += typeof one === 'string' ? one.length : 1;
  }
  return length <= maxShortLength;
}
