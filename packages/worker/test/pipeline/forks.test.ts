// The siblings of a group: they are prepared once, and each continues on its own.

import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { groupId, type RolloutId } from '@millrace/protocol';
import { probeBubblewrap } from '@millrace/sandbox';
import { bash, finish, says, shell, WorkerBed } from './worker-bed.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;

const setup = 'date +%s%N > made; echo begun > own';
const task = { setup, check: 'cat made; sort own' };
/** Each agent writes its own line to a prepared file. */
const policy = () => says(bash('date +%s%N >> own; mkdir "mine-$(date +%s%N)"; ls -d mine-* | wc -l >> own'), finish());

/** A sibling in the one group. */
const sibling = (...of: Parameters<typeof shell>) => ({ ...shell(...of), group: groupId.parse('g') });

describe('forks', { skip }, () => {
  /** The lines that the check printed. */
  async function linesOf(bed: WorkerBed, id: RolloutId): Promise<string[]> {
    const { state, result, failure } = await bed.ended(id);
    assert.equal(state, 'done', JSON.stringify(failure));
    return String(result?.score.output).trim().split('\n');
  }

  test('the setup of four siblings runs once, each starts with its files, and none sees what another does', async () => {
    await using bed = await WorkerBed.open({ policy: policy() });
    await bed.startWorker();
    const ids = await bed.submitAll(sibling('g-1', task), sibling('g-2', task), sibling('g-3', task), sibling('g-4', task));
    const seen = await Promise.all(ids.map((id) => linesOf(bed, id)));
    assert.equal(new Set(seen.map(([made]) => made)).size, 1);
    assert.equal(new Set(seen.map(([, , own]) => own)).size, 4);
    for (const [, count, , begun, ...more] of seen) assert.deepEqual([count, begun, more], ['1', 'begun', []]);
  });

  test('two workers of a machine share what one of them has prepared', async () => {
    await using bed = await WorkerBed.open({ policy: policy(), pipeline: { initSlots: 1, readySlots: 1, runSlots: 1 } });
    await bed.startWorker();
    await bed.startWorker();
    const ids = await bed.submitAll(sibling('w-1', task), sibling('w-2', task), sibling('w-3', task), sibling('w-4', task));
    const seen = await Promise.all(ids.map((id) => linesOf(bed, id)));
    assert.equal(new Set(seen.map(([made]) => made)).size, 1);
    assert.equal((await readdir(join(bed.runDir, 'layers'))).filter((name) => !name.endsWith('.lock')).length, 1);
  });

  test('a task that shares nothing, one with another environment, and one without a group are each prepared alone', async () => {
    await using bed = await WorkerBed.open({ policy: policy() });
    await bed.startWorker();
    const alone = { ...task, share_setup: false };
    const ids = await bed.submitAll(
      sibling('a-1', alone),
      sibling('a-2', alone),
      sibling('a-3', task),
      sibling('a-4', { ...task, env: { A: 'b' } }),
      shell('a-5', task),
    );
    const seen = await Promise.all(ids.map((id) => linesOf(bed, id)));
    assert.equal(new Set(seen.map(([made]) => made)).size, 5);
  });

  test('a setup that fails makes every sibling fail, blamed on the task', async () => {
    await using bed = await WorkerBed.open();
    await bed.startWorker();
    const bad = { setup: 'echo no such luck >&2; exit 3' };
    const ids = await bed.submitAll(sibling('f-1', bad), sibling('f-2', bad), sibling('f-3', bad));
    for (const id of ids) {
      const { state, failure } = await bed.ended(id);
      assert.deepEqual([state, failure?.code, failure?.blame, failure?.stage], ['failed', 'init-failed', 'task', 'init']);
      assert.match(failure?.message ?? '', /exit code 3: no such luck/);
    }
  });

  test('a setup that runs out of time makes every sibling fail once, as init-timeout', async () => {
    await using bed = await WorkerBed.open();
    await bed.startWorker();
    const slow = (id: string) => ({ ...sibling(id, { setup: 'sleep 1000' }), limits: { init_timeout_s: 2 } });
    const ids = await bed.submitAll(slow('t-1'), slow('t-2'), slow('t-3'));
    for (const id of ids) assert.equal((await bed.ended(id)).failure?.code, 'init-timeout');
  });

  test('if the sibling that prepares is cancelled, the next one takes over', async () => {
    await using bed = await WorkerBed.open({ policy: policy() });
    await bed.startWorker();
    const gate = { ...task, setup: `${setup}; sleep 3` };
    const first = await bed.submit(sibling('c-1', gate));
    await bed.reach(first, 'init');
    const others = await bed.submitAll(sibling('c-2', gate), sibling('c-3', gate));
    await Promise.all(others.map((id) => bed.reach(id, 'init')));
    await bed.store.cancel(first, { tombstoneMs: 1000 });
    assert.equal((await bed.ended(first)).state, 'cancelled');
    const seen = await Promise.all(others.map((id) => linesOf(bed, id)));
    assert.equal(new Set(seen.map(([made]) => made)).size, 1);
  });
});
