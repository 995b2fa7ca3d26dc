// When a store is full, and what it still does then. The limits are set by the test; `http/full-disk.test.ts` fills a real disk.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { batchId, workerId } from '@millrace/protocol';
import { makeBatch, makeResult, makeRollout, makeTrajectory, moveUpTo } from '@millrace/testkit';
import { DiskBudget } from '../src/disk-budget.ts';
import { openSqliteStore } from '../src/sqlite/sqlite.ts';
import { openSqliteBed } from './sqlite/bed.ts';

const mib = 2 ** 20;
const roomy = { maxQueued: 1000 };
const used = (fileMib: number, more: { readonly walMib?: number; readonly reusableMib?: number; readonly freeMib?: number } = {}) => ({
  fileBytes: fileMib * mib,
  walBytes: (more.walMib ?? 0) * mib,
  reusableBytes: (more.reusableMib ?? 0) * mib,
  freeBytes: (more.freeMib ?? 1000) * mib,
});

test('a store is full when file and log exceed the budget; pages that can be used again do not count', () => {
  const judge = (size: ReturnType<typeof used>) => new DiskBudget({ budgetBytes: 100 * mib, leastFreeBytes: 0 }).judge(size);
  assert.equal(judge(used(100)), undefined);
  assert.match(judge(used(101)) ?? '', /it uses 101 MiB of its budget of 100 MiB \(store\.budgetMib\): .*raise the budget/);
  assert.match(judge(used(80, { walMib: 30 })) ?? '', /uses 110 MiB/);
  assert.equal(judge(used(150, { reusableMib: 60 })), undefined);
});

test('a store is full when its disk has too little space, whatever its budget', () => {
  const budget = new DiskBudget({ leastFreeBytes: 64 * mib });
  assert.equal(budget.judge(used(10, { freeMib: 64 })), undefined);
  assert.match(budget.judge(used(10, { freeMib: 63.5 })) ?? '', /its disk has 64 MiB free and needs 64 MiB \(store\.leastFreeMib\)/);
});

test('a store that was full has space again only well below its limits', () => {
  const budget = new DiskBudget({ budgetBytes: 100 * mib, leastFreeBytes: 100 * mib });
  assert.ok(budget.judge(used(101)));
  assert.ok(budget.judge(used(99)));
  assert.equal(budget.judge(used(94)), undefined);
  assert.ok(budget.judge(used(10, { freeMib: 99 })));
  assert.ok(budget.judge(used(10, { freeMib: 104 })));
  assert.equal(budget.judge(used(10, { freeMib: 106 })), undefined);
});

test('a full store refuses what is new, repeats what it knows, claims nothing, and saves what runs', async () => {
  await using bed = await openSqliteBed();
  const worker = workerId.parse('w-1');
  const [first, queued] = [makeRollout('first'), makeRollout('queued')];
  await bed.store.submit([first, queued], roomy);
  await bed.store.registerWorker({ id: worker, host: 'here', pid: 1 }, { leaseMs: 60_000 });
  const [claim] = await bed.store.claim(worker, 1);
  assert.ok(claim);
  await using full = await openSqliteStore({
    path: bed.path,
    clock: systemClock,
    log: silentLog,
    limits: { budgetBytes: 1000, leastFreeBytes: 0 },
  });
  const refusal = { code: 'store-full', status: 507, message: /^the store is full and accepts nothing new .* raise the budget$/ };
  await assert.rejects(full.submit([makeRollout('new')], roomy), refusal);
  await assert.rejects(full.submit([first, makeRollout('new')], roomy), refusal);
  const known = await full.submit([first], roomy);
  assert.equal(known.kind, 'accepted');
  await assert.rejects(full.createBatch(makeBatch('b-1')), refusal);
  assert.deepEqual(await full.claim(worker, 1), []);
  await moveUpTo(full, claim, 'evaluate');
  assert.equal(await full.finish(claim, { state: 'done', result: makeResult(1), trajectory: makeTrajectory(claim.id, 1) }), true);
  assert.match((await full.checkHealth()).full ?? '', /budget/);
  assert.equal((await bed.store.size()).full, undefined);
});

test('tasks are not appended to a batch of a full store, unless they were before', async () => {
  await using bed = await openSqliteBed();
  const id = batchId.parse('b-1');
  await bed.store.createBatch(makeBatch('b-1', { closed: false }));
  const more = { tasks: [{ n: 1 }], closed: false, key: 'k' };
  assert.equal(await bed.store.appendTasks(id, more), 'appended');
  await using full = await openSqliteStore({
    path: bed.path,
    clock: systemClock,
    log: silentLog,
    limits: { budgetBytes: 1000, leastFreeBytes: 0 },
  });
  assert.equal(await full.createBatch(makeBatch('b-1', { closed: false })), 'known');
  assert.equal(await full.appendTasks(id, more), 'appended');
  await assert.rejects(full.appendTasks(id, { ...more, key: 'other' }), { code: 'store-full' });
});
