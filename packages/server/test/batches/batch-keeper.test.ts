// Batches under random rewards, durations, failures and restarts: no group is delivered twice or lost, the target is met exactly,
// the surplus is stopped, and every rollout is accounted for.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backendId, batchId, isTerminal } from '@millrace/protocol';
import type { BatchRecord } from '@millrace/store';
import { type Course, makeRandom } from '@millrace/testkit';
import { isInformative } from '../../src/batches/judge-group.ts';
import { type BatchBed, openBatchBed } from './simulated-batches.ts';

/** Half of the tasks have equal rewards, durations are long-tailed, some siblings fail. */
function makeCourse(
  seed: number,
  failing = 0.1,
): (rollout: { readonly id: string; readonly submission: { task: Record<string, unknown> } }) => Course {
  const random = makeRandom(seed);
  return ({ submission }) => {
    const uniform = Number(submission.task.question) % 2 === 0;
    const seconds = Math.exp(3 * random()) + (random() < 0.05 ? 60 : 0);
    const tokens = Math.ceil(seconds * 10);
    if (random() < failing) return { seconds, tokens };
    return { seconds, tokens, reward: uniform ? 1 : Math.round(random()) };
  };
}

async function checkBatch(bed: BatchBed, record: BatchRecord | undefined): Promise<void> {
  assert.ok(record);
  const { plan, groups } = record;
  const delivered = await bed.store.deliveredGroups(record.id, { after: 0, limit: 1000 });
  assert.deepEqual(
    delivered.map(({ seq }) => seq),
    Array.from({ length: groups.delivered }, (_, index) => index + 1),
  );
  assert.equal(new Set(delivered.map(({ id }) => id)).size, delivered.length);
  for (const { rollouts } of delivered) {
    const rewards = rollouts.flatMap(({ result }) => result?.reward ?? []);
    assert.equal(rewards.length, rollouts.length);
    assert.ok(rewards.length >= 2 && rewards.length <= plan.group_size && isInformative(rewards, plan.informative), `rewards ${rewards}`);
  }
  if (record.state === 'met') assert.equal(groups.delivered, plan.target);
  else assert.ok(groups.delivered < plan.target);
  assert.equal(groups.open, 0);
  const kept = Object.values(groups).reduce((total, count) => total + count, 0);
  assert.equal(kept, record.tasks.begun + record.carried);
}

async function listAll(bed: BatchBed) {
  return (await bed.store.list({ limit: 10_000 })).rollouts;
}

test('under random rewards, durations, failures and keeper crashes, each target is met exactly and every task is accounted for', async () => {
  for (let seed = 1; seed <= 8; seed += 1) {
    const random = makeRandom(seed * 7919);
    const pick = (most: number) => 1 + Math.floor(random() * most);
    await using bed = await openBatchBed({ slots: pick(24), course: makeCourse(seed) });
    const size = 1 + pick(4);
    const fields = {
      group_size: size,
      target: pick(6),
      count: 40,
      ...(random() < 0.3 ? { min_samples: Math.max(2, size - 1) } : {}),
      ...(random() < 0.3 ? { give_up_after: Math.max(2, size - 1) } : {}),
      failures: random() < 0.5 ? ('replace' as const) : ('exclude' as const),
    };
    await bed.begin('b', fields);
    const record = await bed.fill('b', { mayDie: 0.3, seed });
    await checkBatch(bed, record);
    await bed.pipeline.stopCancelled();
    await bed.pipeline.claim();
    const rollouts = await listAll(bed);
    assert.deepEqual(
      rollouts.filter(({ state }) => !isTerminal(state)).map(({ id }) => id),
      [],
      `seed ${seed}: surplus keeps running`,
    );
    const after = await bed.store.batch(batchId.parse('b'));
    const members = (await bed.store.deliveredGroups(batchId.parse('b'), { after: 0, limit: 1000 })).flatMap(({ rollouts: all }) => all);
    const wasted = Object.values(after?.wasted ?? {}).reduce((total, { rollouts: count }) => total + count, 0);
    const sampled = rollouts.filter(({ attempt }) => attempt > 0).length;
    assert.equal(members.length + wasted, sampled, `seed ${seed}: ${members.length} delivered + ${wasted} wasted of ${sampled} sampled`);
  }
});

test('the next batch of a series uses the surplus: no task is dropped, no rollout with a reward is wasted', async () => {
  for (let seed = 1; seed <= 3; seed += 1) {
    await using bed = await openBatchBed({ slots: 16, course: makeCourse(seed, 0) });
    const ids = ['s1', 's2', 's3', 's4'];
    for (const [index, id] of ids.entries()) {
      const surplus = seed % 2 === 0 ? ('keep' as const) : ('stop' as const);
      await bed.begin(id, { series: 's', group_size: 4, target: 3, tasks: makeStretch(index * 30, 30), surplus });
      await checkBatch(bed, await bed.fill(id, { mayDie: 0.2, seed }));
    }
    const records = await Promise.all(ids.map((id) => bed.store.batch(batchId.parse(id))));
    assert.ok(
      records.some((record) => (record?.carried ?? 0) > 0),
      'nothing was carried over',
    );
    // Only the last batch may have surplus; that of the others was carried over.
    for (const record of records.slice(0, -1)) assert.equal(record?.groups.surplus, 0, `${record?.id} left surplus`);
    const delivered = await Promise.all(ids.map((id) => bed.store.deliveredGroups(batchId.parse(id), { after: 0, limit: 100 })));
    assert.equal(new Set(delivered.flat().map(({ id }) => id)).size, 12);
    // A surplus rollout with a reward counts as waste only while the next batch may still carry it over.
    await bed.settle();
    await bed.begin('next', { series: 's', group_size: 4, count: 0, closed: false });
    const surplusSiblings = (await bed.store.surplusGroups(batchId.parse('next'), 99)).flatMap(({ siblings }) => siblings);
    const rewarded = surplusSiblings.filter(({ reward }) => reward !== undefined).length;
    const stopped = (await listAll(bed)).filter(({ state, attempt }) => state === 'cancelled' && attempt > 0).length;
    const wasted = await Promise.all(ids.map(async (id) => (await bed.store.batch(batchId.parse(id)))?.wasted.surplus.rollouts ?? 0));
    const surplus = wasted.reduce((total, count) => total + count, 0);
    assert.ok(surplus <= stopped + rewarded, `${surplus} surplus, ${stopped} stopped, ${rewarded} kept`);
  }
});

test('groups whose weights are too old at delivery are sampled again, and delivered groups are within the bound', async () => {
  let version = 0;
  await using bed = await openBatchBed({ slots: 8, course: makeCourse(3, 0), version: () => version });
  const join = () =>
    bed.store.joinBackend({ id: backendId.parse('x'), url: 'http://x', dialect: 'vllm', policyVersion: version, state: 'up' });
  await join();
  await bed.begin('b', { group_size: 4, target: 4, count: 60, max_staleness: 0 });
  await bed.advance();
  for (let step = 0; step < 6; step += 1) {
    await bed.pipeline.claim();
    await bed.pipeline.step();
  }
  version = 1;
  await join();
  const record = await bed.fill('b');
  assert.equal(record?.state, 'met');
  assert.ok((record?.groups.stale ?? 0) > 0, 'nothing was stale');
  const delivered = await bed.store.deliveredGroups(batchId.parse('b'), { after: 0, limit: 9 });
  for (const { rollouts } of delivered) for (const { result } of rollouts) assert.equal(result?.policy_versions?.first, 1);
});

test('a batch for a version too far ahead starts no group until the weights catch up', async () => {
  await using bed = await openBatchBed({ slots: 8, course: makeCourse(4, 0) });
  const join = (policyVersion: number) =>
    bed.store.joinBackend({ id: backendId.parse('x'), url: 'http://x', dialect: 'vllm', policyVersion, state: 'up' });
  await join(0);
  await bed.begin('b', { target: 1, for_version: 2, max_staleness: 1, count: 40 });
  assert.equal(await bed.advance(), false);
  await join(1);
  assert.equal(await bed.advance(), true);
});

function makeStretch(from: number, count: number) {
  return Array.from({ length: count }, (_, index) => ({ question: `${from + index}`, answer: '2' }));
}

test('a batch whose groups fail without blame on their tasks pauses, burns no task, and resumes when a probe succeeds', async () => {
  let isBroken = true;
  let failed = 0;
  const course = ({ id }: { readonly id: string }): Course => {
    if (isBroken) failed += 1;
    return isBroken ? { seconds: 0.1, tokens: 0 } : { seconds: 5, tokens: 10, reward: id.charCodeAt(id.length - 1) % 2 };
  };
  await using bed = await openBatchBed({ slots: 16, course });
  await bed.begin('b', { group_size: 2, target: 20, count: 40, max_replacements: 0 });
  const id = batchId.parse('b');
  await bed.settle();
  const paused = await bed.store.batch(id);
  assert.equal(paused?.state, 'open');
  assert.match(paused?.paused?.reason ?? '', /sandbox-died/);
  assert.ok(failed <= 2 * (16 + 3), `${failed} rollouts failed`);
  for (let probe = 1; probe <= 5; probe += 1) {
    const before = failed;
    bed.clock.advance(5000);
    await bed.settle();
    assert.equal(failed, before, 'it probes only every ten seconds');
    bed.clock.advance(5000);
    await bed.settle();
    assert.equal(failed, before + 2, 'a probe is one group');
  }
  isBroken = false;
  bed.clock.advance(10_000);
  const met = await bed.fill('b');
  assert.deepEqual([met?.state, met?.groups.delivered, met?.paused], ['met', 20, undefined]);
  const groups = await bed.store.deliveredGroups(id, { after: 0, limit: 100 });
  assert.ok(new Set(groups.map(({ taskIndex }) => taskIndex)).size === 20);
  const indexes = groups.map(({ taskIndex }) => taskIndex);
  assert.ok(
    indexes.every((index) => index < 40),
    'tasks that failed were sampled again',
  );
});

test('groups that fail because of their tasks pause no batch', async () => {
  await using bed = await openBatchBed({ slots: 16, course: () => ({ seconds: 0.1, tokens: 0, failure: 'init-failed' }) });
  await bed.begin('b', { group_size: 2, target: 20, count: 40, max_replacements: 0 });
  const record = await bed.fill('b');
  assert.deepEqual([record?.state, record?.groups.failed, record?.paused], ['short', 40, undefined]);
});
