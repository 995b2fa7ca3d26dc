// What `millrace view` refuses to show.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeTempFolder } from '@millrace/testkit/plain';
import { millrace, openIo } from '../fake-io.ts';

test('a file of tasks, which holds no rollouts, is refused rather than shown as an empty page', async () => {
  await using folder = await makeTempFolder('view');
  const file = join(folder.path, 'tasks.jsonl');
  await writeFile(file, '{"scenario": "math", "task": {"question": "1 + 1", "answer": "2"}}\n');
  const { code, out, err } = await millrace(['view', file], openIo());
  assert.deepEqual([code, out], [2, '']);
  assert.match(err, /tasks\.jsonl has no rollouts, but 1 other lines; give what millrace submit printed/);
});
