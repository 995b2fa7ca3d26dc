// `submit --harbor`: folders become lines, and folders that cannot be run are named with their reasons.

import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { RolloutError } from '@millrace/protocol';
import { makeTempFolder } from '@millrace/testkit/plain';
import { locateFaults } from '../../src/tasks/faults.ts';
import { readHarborInput } from '../../src/tasks/harbor-input.ts';
import { parseTaskLines } from '../../src/tasks/task-lines.ts';

const examples = join(import.meta.dirname, '../../../../examples/harbor');

test('each task folder is one line of a submission, and what the service refuses is named by its folder', async () => {
  const { content, names, source } = await readHarborInput([join(examples, 'greeting'), join(examples, 'log-report')]);
  const { submissions, lines } = parseTaskLines(content, { siblings: 2, prefix: 'g', fields: { limits: { max_turns: 3 } } });
  assert.deepEqual([submissions.length, submissions[3]?.group, submissions[0]?.limits?.max_turns], [4, 'g-2', 3]);
  assert.deepEqual([submissions[0]?.task.folder, submissions[0]?.limits?.run_timeout_s], [join(examples, 'greeting'), 300]);
  const details = { faults: [{ index: 2, path: 'rollouts[2].task.folder', message: 'no' }] };
  const refused = locateFaults(new RolloutError('task-invalid', 'no', { details }), { source, lines, names: names ?? [] });
  assert.equal(String(Reflect.get(Object(refused), 'message')), `${join(examples, 'log-report')}: task.folder: no`);
});

test('nothing is submitted if a folder cannot be run, is empty or does not exist', async () => {
  await using temp = await makeTempFolder('hi');
  await assert.rejects(readHarborInput([temp.path]), /there is no folder with a task\.toml/);
  await assert.rejects(readHarborInput([join(temp.path, 'none')]), /cannot read .*none/);
  await mkdir(join(temp.path, 'bad'));
  await writeFile(join(temp.path, 'bad/task.toml'), '[environment]\ngpus = 2\n');
  await assert.rejects(readHarborInput([temp.path, examples]), /1 bad task folder\n {2}.*bad: task\.toml: environment\.gpus: a GPU/);
});
