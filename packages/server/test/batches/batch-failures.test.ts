// What a batch does about bad lines of its task file, and about failures that the policy caused.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { batchId } from '@millrace/protocol';
import { type Course, makeTempFolder } from '@millrace/testkit';
import { BatchKeeper } from '../../src/batches/batch-keeper.ts';
import { toGroupView } from '../../src/batches/group-view.ts';
import { TaskFiles } from '../../src/batches/task-files.ts';
import { openBatchBed, scenarios } from './simulated-batches.ts';

const b = batchId.parse('b');

for (const rounds of [1, undefined]) {
  test(`the bad tail of a file is reported once, with ${rounds ?? 'any number of'} rounds`, async () => {
    await using folder = await makeTempFolder('millrace-tasks');
    const file = join(folder.path, 'tasks.jsonl');
    await writeFile(file, ['{"bad":1}', 'not json', '{"worse":2}'].join('\n'));
    await using bed = await openBatchBed({ slots: 8, course: () => ({ seconds: 1, tokens: 1, reward: 1 }) });
    await bed.begin('b', { count: 0, closed: false, source: { file: 'train', ...(rounds && { rounds }) } });
    const { store, clock } = bed;
    const keeper = new BatchKeeper({ store, scenarios, files: new TaskFiles({ train: file }), clock, log: silentLog });
    for (let look = 0; look < 5; look += 1) await keeper.advance();
    const { events } = await store.events(0, { limit: 99, kinds: ['task-skip'] });
    assert.deepEqual(
      events.map(({ data }) => data.line),
      [1, 2, 3],
    );
  });
}

/** The first sibling of each group is killed for its memory; the others solve the task. */
function killedFirst({ id }: { readonly id: string }): Course {
  return id.endsWith(':0') ? { seconds: 1, tokens: 10, failure: 'sandbox-killed' } : { seconds: 2, tokens: 10, reward: 1 };
}

test('a batch that penalises failures of the policy delivers them with the penalty', async () => {
  await using bed = await openBatchBed({ slots: 8, course: killedFirst });
  await bed.begin('b', { group_size: 4, target: 1, policy_failures: 'penalise', penalty: -1 });
  assert.equal((await bed.fill('b'))?.state, 'met');
  const [group] = await bed.store.deliveredGroups(b, { after: 0, limit: 1 });
  const view = toGroupView(group ?? assert.fail('nothing was delivered'));
  assert.deepEqual(view.rewards.toSorted(), [-1, 1, 1, 1]);
  const failed = view.rollouts.find(({ state }) => state === 'failed');
  assert.deepEqual([failed?.reward, failed?.failure?.blame], [null, 'policy']);
  assert.equal(view.rewards[view.rollouts.findIndex(({ state }) => state === 'failed')], -1);
});

test('a batch that samples failures of the policy again finds its groups uniform', async () => {
  await using bed = await openBatchBed({ slots: 8, course: killedFirst });
  await bed.begin('b', { group_size: 4, target: 1, count: 4 });
  const record = await bed.fill('b');
  assert.deepEqual([record?.state, record?.groups.uniform], ['short', 4]);
});
