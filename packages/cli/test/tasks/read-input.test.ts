// What is not JSON lines is named once, with what to do, instead of line by line.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeTempFolder } from '@millrace/testkit/plain';
import { readInput } from '../../src/tasks/read-input.ts';
import { openIo } from '../fake-io.ts';

test('a list, an object over several lines and a folder say what to give instead', async () => {
  await using folder = await makeTempFolder('input');
  const file = join(folder.path, 'tasks.json');
  const task = { scenario: 'math', task: { question: '1 + 1', answer: '2' } };
  for (const [content, wanted] of [
    [JSON.stringify([task]), /tasks\.json is a JSON list, and each line must be a task of its own; jq -c '\.\[\]' writes it so/],
    [`\ufeff\n${JSON.stringify([task], undefined, 2)}`, /is a JSON list/],
    [JSON.stringify(task, undefined, 2), /tasks\.json is JSON over several lines, .*; jq -c '\.' writes it so/],
  ] as const) {
    await writeFile(file, content);
    await assert.rejects(readInput(file, openIo()), wanted);
  }
  await assert.rejects(readInput(folder.path, openIo()), /is a folder; one with Harbor tasks needs --harbor/);
  await writeFile(file, `${JSON.stringify(task)}\n`);
  assert.equal((await readInput(file, openIo())).source, file);
});
