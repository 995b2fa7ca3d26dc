// Which tasks a file or a folder holds, and by which names they are reported.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { nameOf, readTaskFile } from '../../src/task/task-file.ts';

test('a Harbor task is named by its folder', async () => {
  const lines = await readTaskFile(join(import.meta.dirname, '../../../../examples/harbor'), 'harbor');
  assert.deepEqual(lines.map(nameOf).sort(), ['greeting', 'largest-file', 'log-report', 'unfinished-merge']);
});
