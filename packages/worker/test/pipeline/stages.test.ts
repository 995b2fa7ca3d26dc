// Stages do not block each other, and a cancel takes effect in each of them.

import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { probeBubblewrap } from '@millrace/sandbox';
import { processesInSandboxesOf } from '@millrace/testkit';
import { cancelCases, gated, makeGated } from './cancel-cases.ts';
import { says, shell, toRecord, WorkerBed } from './worker-bed.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;

const plain = (id: string) => ({ id, scenario: 'math', task: { question: '1+1?', answer: '2' } });

describe('stages', { skip }, () => {
  test('a slow evaluate never slows init or run', async () => {
    const { scenario, open } = makeGated('evaluate');
    await using bed = await WorkerBed.open({
      scenarios: [scenario],
      pipeline: { initSlots: 1, readySlots: 1, runSlots: 1, evaluateSlots: 1, evaluateWaiting: 4 },
    });
    await bed.startWorker();
    const ids = await bed.submitAll(gated('slow-1'), gated('slow-2'), gated('slow-3'), gated('slow-4'));
    await Promise.all(ids.map((id) => bed.reach(id, 'evaluate')));
    open();
    const states = await Promise.all(ids.map(async (id) => (await bed.ended(id)).state));
    assert.deepEqual(states, ['done', 'done', 'done', 'done']);
  });

  test('claims stop while too many finished runs wait for evaluate, and they count as load', async () => {
    const { scenario, open } = makeGated('evaluate');
    const pipeline = { initSlots: 2, readySlots: 2, runSlots: 4, evaluateSlots: 1 };
    await using bed = await WorkerBed.open({ scenarios: [scenario], pipeline });
    const worker = await bed.startWorker();
    const ids = await bed.submitAll(...Array.from({ length: 60 }, (_, index) => gated(`line-${index}`)));
    const unfinished = async () => {
      const { init, ready, run, evaluate } = await bed.store.counts();
      return evaluate < 5 || init + ready + run > 0;
    };
    while (await unfinished()) await setTimeout(100);
    await setTimeout(1500); // longer than a worker waits before it polls
    const { held, stages } = worker.report();
    assert.ok(held <= 1 + 4 + 2 + 4, `it holds ${held}`);
    assert.equal(stages.evaluate.waiting, held - 1);
    const counts = await bed.store.counts();
    assert.deepEqual([counts.queued, counts.evaluate], [60 - held, held]);
    assert.equal((await bed.store.load()).active, held - 1);
    open();
    for (const id of ids) assert.equal((await bed.ended(id)).state, 'done');
  });

  test('an init slot is never held while waiting for a run slot, and the ready buffer bounds what is prepared', async () => {
    await using bed = await WorkerBed.open({
      policy: says('\\boxed{2}'),
      withoutBackend: true,
      pipeline: { initSlots: 1, readySlots: 2, runSlots: 1 },
    });
    const worker = await bed.startWorker();
    const ids = await bed.submitAll(plain('held-1'), plain('held-2'), plain('held-3'), plain('held-4'), plain('held-5'));
    // One waits in run for a backend, two are ready, and no more are claimed.
    await Promise.all([bed.reach(ids[0], 'run'), bed.reach(ids[1], 'ready'), bed.reach(ids[2], 'ready')]);
    const active = () => {
      const { init, ready, run } = worker.report().stages;
      return [init.active, ready.active, run.active];
    };
    // The store knows of a stage a moment before the slot is counted.
    for (let tries = 0; tries < 100 && active()[1] !== 2; tries += 1) await setTimeout(50);
    assert.deepEqual(active(), [0, 2, 1]);
    assert.equal((await bed.store.counts()).queued, 2);
    await bed.store.joinBackend(toRecord(bed.backend.url));
    for (const id of ids) assert.equal((await bed.ended(id)).state, 'done');
  });

  for (const [where, state, open] of cancelCases) {
    test(`cancelling ends what would run for a minute or for ever in ${where}`, async () => {
      const { bed, input } = await open();
      await using _bed = bed;
      await bed.startWorker();
      const id = await bed.submit(input);
      await bed.reach(id, state);
      assert.equal(await bed.store.cancel(id, { tombstoneMs: 1000 }), 'asked');
      const record = await bed.ended(id);
      assert.equal(record.state, 'cancelled');
      assert.equal(record.result?.reward, null);
      assert.deepEqual(await processesInSandboxesOf(bed.runDir), []);
      assert.deepEqual(
        (await readdir(bed.runDir)).filter((name) => name.startsWith('sb-')),
        [],
      );
    });
  }

  test('a worker that closes returns its rollouts to the queue, uncharged, and another worker finishes them', async () => {
    await using bed = await WorkerBed.open({ withoutBackend: true });
    const first = await bed.startWorker();
    const id = await bed.submit(shell('handed'));
    await bed.reach(id, 'run');
    await first[Symbol.asyncDispose]();
    const back = await bed.reach(id, 'queued');
    assert.deepEqual([back.retries, back.losses], [0, 0]);
    assert.deepEqual(await processesInSandboxesOf(bed.runDir), []);
    await bed.store.joinBackend(toRecord(bed.backend.url));
    await bed.startWorker();
    const record = await bed.ended(id);
    assert.deepEqual([record.state, record.attempt], ['done', 2]);
  });

  test('a worker that was only slow is fenced: it drops its rollouts and continues under a new id', async () => {
    await using bed = await WorkerBed.open({ policy: says('\\boxed{2}'), withoutBackend: true });
    const worker = await bed.startWorker();
    const id = await bed.submit(plain('fenced'));
    await bed.reach(id, 'run');
    const before = worker.id;
    await bed.store.dropWorker(before, { maxLosses: 10 });
    await bed.store.joinBackend(toRecord(bed.backend.url));
    const record = await bed.ended(id);
    assert.deepEqual([record.state, record.losses], ['done', 1]);
    assert.notEqual(record.worker, before);
    const ends = (await bed.store.events(0, { limit: 1000 })).events.filter(({ kind }) => kind === 'rollout-end');
    assert.equal(ends.length, 1);
  });
});
