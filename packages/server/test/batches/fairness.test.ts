// A batch next to a long queue of plain submissions, on a real store with simulated work.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { batchId } from '@millrace/protocol';
import { makeRandom, makeRollout } from '@millrace/testkit';
import { openBatchBed } from './simulated-batches.ts';

/** The seconds from the start of a batch to its first group, and to its end, behind `queued` plain submissions of which some run. */
async function timeBatch(queued: number): Promise<{ firstS: number; endS: number }> {
  const random = makeRandom(11);
  const course = ({ id }: { readonly id: string }) => ({
    seconds: 10 + 20 * random(),
    tokens: 100,
    reward: id.charCodeAt(id.length - 1) % 2,
  });
  await using bed = await openBatchBed({ slots: 32, course });
  const plain = Array.from({ length: queued }, (_, index) => makeRollout(`plain-${index}`));
  await bed.store.submit(plain, { maxQueued: 10_000 });
  for (let turn = 0; turn < 100 && queued > 0; turn += 1) {
    await bed.pipeline.claim();
    await bed.pipeline.step();
  }
  const startMs = bed.clock.now();
  await bed.begin('b', { group_size: 8, target: 8, count: 40 });
  await bed.fill('b');
  const [first] = await bed.store.deliveredGroups(batchId.parse('b'), { after: 0, limit: 1 });
  assert.ok(first);
  return { firstS: (first.deliveredAtMs - startMs) / 1000, endS: (bed.clock.now() - startMs) / 1000 };
}

test('behind 3,000 plain submissions, a batch delivers its first group within twice the time of an idle service', async () => {
  const [idle, busy] = [await timeBatch(0), await timeBatch(3000)];
  assert.ok(busy.firstS <= 2 * idle.firstS, `first group after ${busy.firstS} s, on an idle service after ${idle.firstS} s`);
  assert.ok(busy.endS <= 3 * idle.endS, `all groups after ${busy.endS} s, on an idle service after ${idle.endS} s`);
});
