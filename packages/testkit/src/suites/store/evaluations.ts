// The store's promises about evaluations: each sample is taken once and counted once, whatever ends it, and nothing that was
// acknowledged is lost.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { evaluationId } from '@millrace/protocol';
import type { Store } from '@millrace/store';
import { makeFailure, makeId, makeResult, type OpenBed, openTimedBed, registerWorker, submitAll } from './bed/bed.ts';
import { begin, e, finish, makeEvaluation } from './bed/bed-batches.ts';

async function read(store: Store) {
  const record = await store.evaluation(e);
  assert.ok(record);
  return record;
}

async function endKinds(store: Store): Promise<unknown[]> {
  const { events } = await store.events(0, { limit: 999, kinds: ['evaluation-open', 'evaluation-end'] });
  return events.map(({ kind, data }) => [kind, data.state ?? null]);
}

export function defineEvaluationTests(openBed: OpenBed): void {
  test('a repeated request for an evaluation changes nothing, and a different one with its id is a conflict', async () => {
    await using bed = await openTimedBed(openBed);
    assert.equal(await bed.store.createEvaluation(makeEvaluation()), 'created');
    assert.equal(await begin(bed.store, 0, 1), true);
    assert.equal(await bed.store.createEvaluation(makeEvaluation()), 'known');
    assert.equal(await bed.store.createEvaluation(makeEvaluation({ n: 3 })), 'conflict');
    const { begunTasks, tasks, state } = await read(bed.store);
    assert.deepEqual([begunTasks, tasks, state], [1, 3, 'open']);
    assert.equal(await bed.store.evaluation(evaluationId.parse('other')), undefined);
  });

  test('every sample is counted once, with its reward or without one, and the last ends the evaluation', async () => {
    await using bed = await openTimedBed(openBed);
    const { store } = bed;
    const worker = await registerWorker(store, 'w');
    await store.createEvaluation(makeEvaluation());
    await begin(store, 0, 3);
    const claims = await store.claim(worker, 9);
    assert.deepEqual(
      claims.map(({ id }) => id),
      ['e:0:0', 'e:0:1', 'e:1:0', 'e:1:1', 'e:2:0', 'e:2:1'],
    );
    const [a, b, c, d, f, g] = claims;
    assert.ok(a && b && c && d && f && g);
    await finish(store, a, 1);
    assert.equal(await finish(store, a, 1), false, 'a second end is fenced');
    await finish(store, b, 1 - 1e-12);
    await finish(store, c, 0.25);
    await store.finish(d, { state: 'failed', failure: makeFailure('evaluate-timeout', 1) });
    await finish(store, f, 0, makeFailure('sandbox-killed', 1));
    assert.equal((await read(store)).state, 'open');
    await store.cancel(makeId('e:2:1'), { tombstoneMs: 0 });
    await store.finish(g, { state: 'cancelled' });
    const record = await read(store);
    assert.equal(record.state, 'done');
    assert.deepEqual(record.scores, [
      { ended: 2, scored: 1, correct: 0, tasks: 2 },
      { ended: 2, scored: 2, correct: 2, tasks: 1 },
    ]);
    assert.ok(Math.abs(record.rewards.sum - 2.25) < 1e-9);
    const mean = 2.25 / 4;
    assert.ok(Math.abs(record.rewards.squares - ((2 - 2 * mean) ** 2 + (0.25 - mean) ** 2 + mean ** 2)) < 1e-9);
    assert.deepEqual(record.failures, [
      { blame: 'caller', code: 'cancelled', samples: 1, scored: 0 },
      { blame: 'policy', code: 'sandbox-killed', samples: 1, scored: 1 },
      { blame: 'verifier', code: 'evaluate-timeout', samples: 1, scored: 0 },
    ]);
    assert.deepEqual([record.stopReasons, record.turns, record.sampledTokens], [{ completed: 4 }, 8, 20]);
    assert.deepEqual(record.versions, { first: 1, last: 2 });
    assert.deepEqual(await endKinds(store), [
      ['evaluation-open', null],
      ['evaluation-end', 'done'],
    ]);
  });

  test('a sample that loses its worker or is retried is counted once, when it ends', async () => {
    await using bed = await openTimedBed(openBed);
    const { store } = bed;
    const worker = await registerWorker(store, 'w');
    await store.createEvaluation(makeEvaluation({ count: 1 }));
    await begin(store, 0, 1);
    const [a, b] = await store.claim(worker, 2);
    assert.ok(a && b);
    await store.retry(a, makeFailure('backend-failed', 1), { delayMs: 0 });
    await store.dropWorker(worker, { maxLosses: 3 });
    assert.deepEqual((await read(store)).scores, [{ ended: 0, scored: 0, correct: 0, tasks: 1 }]);
    assert.equal(await finish(store, b, 1), false, 'its worker is gone');
    const second = await registerWorker(store, 'w2');
    for (const claim of await store.claim(second, 2)) await finish(store, claim, 1);
    const { state, scores, failures } = await read(store);
    assert.deepEqual([state, scores, failures], ['done', [{ ended: 2, scored: 2, correct: 2, tasks: 1 }], []]);
  });

  test('tasks begin once: a repeated, late or excessive beginning changes nothing', async () => {
    await using bed = await openTimedBed(openBed);
    const { store } = bed;
    await store.createEvaluation(makeEvaluation());
    const other = await bed.another();
    assert.deepEqual((await Promise.all([begin(store, 0, 2), begin(other, 0, 2)])).sort(), [false, true]);
    assert.equal(await begin(store, 1, 1), false);
    assert.equal(await begin(store, 2, 2), false, 'there is one task left');
    assert.deepEqual(
      (await store.unbegunEvaluations()).map(({ id, tasks, begunTasks, queued }) => [id, tasks, begunTasks, queued]),
      [['e', 3, 2, 4]],
    );
    assert.equal(await begin(store, 2, 1), true);
    assert.deepEqual(await store.unbegunEvaluations(), []);
    assert.equal((await store.counts()).queued, 6);
  });

  test('a sample whose id another rollout has ends without a reward, and the evaluation still ends', async () => {
    await using bed = await openTimedBed(openBed);
    const { store } = bed;
    const worker = await registerWorker(store, 'w');
    await submitAll(store, ['e:0:1']);
    await store.createEvaluation(makeEvaluation({ count: 1 }));
    await begin(store, 0, 1);
    for (const claim of await store.claim(worker, 9)) await finish(store, claim, 1);
    const { state, scores, failures } = await read(store);
    assert.deepEqual([state, scores], ['done', [{ ended: 2, scored: 1, correct: 1, tasks: 1 }]]);
    assert.deepEqual(failures, [{ blame: 'caller', code: 'conflict', samples: 1, scored: 0 }]);
  });

  test('an evaluation shares the workers with other classes by its weight', async () => {
    await using bed = await openTimedBed(openBed);
    const { store } = bed;
    const worker = await registerWorker(store, 'w');
    const plain = Array.from({ length: 20 }, (_, index) => `plain${index}`);
    await submitAll(store, plain);
    await store.createEvaluation(makeEvaluation({ count: 10, weight: 3 }));
    await begin(store, 0, 10);
    const claims = await store.claim(worker, 8);
    assert.equal(claims.filter(({ id }) => id.startsWith('e:')).length, 6);
    assert.deepEqual(
      (await store.classes()).map(({ kind, name, weight, queued, active }) => [kind, name, weight, queued, active]),
      [
        ['plain', '', 1, 18, 2],
        ['evaluation', 'e', 3, 14, 6],
      ],
    );
  });

  test('samples without a reward are taken again, those with one stay, and the numbers are those of the samples that count', async () => {
    await using bed = await openTimedBed(openBed);
    const { store } = bed;
    const worker = await registerWorker(store, 'w');
    await store.createEvaluation(makeEvaluation({ count: 2 }));
    await begin(store, 0, 2);
    const [a, b, c, d] = await store.claim(worker, 4);
    assert.ok(a && b && c && d);
    await finish(store, a, 1);
    for (const claim of [b, c]) await store.finish(claim, { state: 'failed', failure: makeFailure('backend-failed', 1) });
    await store.finish(d, { state: 'failed', failure: makeFailure('evaluate-timeout', 1), result: makeResult(null) });
    assert.equal((await read(store)).state, 'done');
    assert.equal(await store.retryUnscored(e, { limit: 2 }), 2);
    assert.equal(await store.retryUnscored(e, { limit: 9 }), 1);
    assert.equal(await store.retryUnscored(e, { limit: 9 }), 0, 'what is under way is not taken again');
    const open = await read(store);
    assert.deepEqual([open.state, open.endedAtMs, open.failures, open.stopReasons], ['open', undefined, [], { completed: 1 }]);
    assert.deepEqual([open.turns, open.sampledTokens], [2, 5]);
    const again = await store.claim(worker, 9);
    assert.deepEqual(
      again.map(({ id, submission }) => [id, submission.id]),
      ['e:0:1.1', 'e:1:0.1', 'e:1:1.1'].map((id) => [id, id]),
    );
    for (const claim of again) await finish(store, claim, 0);
    const done = await read(store);
    assert.deepEqual(
      [done.state, done.rewards.sum, done.scores],
      [
        'done',
        1,
        [
          { ended: 2, scored: 2, correct: 0, tasks: 1 },
          { ended: 2, scored: 2, correct: 1, tasks: 1 },
        ],
      ],
    );
    const tasks = await store.evaluationTasks(e, { from: 0, limit: 9 });
    assert.deepEqual(
      tasks.map(({ samples }) => samples.map(({ id }) => id)),
      [
        ['e:0:0', 'e:0:1.1'],
        ['e:1:0.1', 'e:1:1.1'],
      ],
    );
    assert.equal(await store.retryUnscored(evaluationId.parse('none'), { limit: 9 }), 'unknown');
    bed.clock.advance(5000);
    assert.equal(await store.retain({ endedMs: 1000, eventsMs: 1000 }), 7, 'replaced samples are deleted with the others');
  });

  test('cancelling stops every sample, keeps what was measured, and happens once', async () => {
    await using bed = await openTimedBed(openBed);
    const { store } = bed;
    const worker = await registerWorker(store, 'w');
    await store.createEvaluation(makeEvaluation());
    await begin(store, 0, 2);
    const [a, b] = await store.claim(worker, 2);
    assert.ok(a && b);
    await finish(store, a, 1);
    assert.equal(await store.cancelEvaluation(e), true);
    assert.equal(await store.cancelEvaluation(e), false);
    assert.equal(await begin(store, 2, 1), false);
    assert.equal(await store.retryUnscored(e, { limit: 9 }), 'cancelled');
    assert.equal((await store.counts()).queued, 0);
    await store.finish(b, { state: 'cancelled' });
    const { state, scores, rewards } = await read(store);
    assert.deepEqual([state, rewards.sum], ['cancelled', 1]);
    assert.deepEqual(scores, [
      { ended: 0, scored: 0, correct: 0, tasks: 1 },
      { ended: 2, scored: 0, correct: 0, tasks: 1 },
      { ended: 2, scored: 1, correct: 1, tasks: 1 },
    ]);
    assert.deepEqual(await endKinds(store), [
      ['evaluation-open', null],
      ['evaluation-end', 'cancelled'],
    ]);
  });

  test('the tasks of an evaluation are read with their samples, in pages', async () => {
    await using bed = await openTimedBed(openBed);
    const { store } = bed;
    const worker = await registerWorker(store, 'w');
    await store.createEvaluation(makeEvaluation({ correctAt: 0.5 }));
    await begin(store, 0, 2);
    const [a, b] = await store.claim(worker, 2);
    assert.ok(a && b);
    await finish(store, a, 0.5);
    await store.finish(b, { state: 'failed', failure: makeFailure('evaluate-failed', 1), result: makeResult(null) });
    const [first, second, ...rest] = await store.evaluationTasks(e, { from: 0, limit: 2 });
    assert.deepEqual([rest.length, first?.index, first?.task, first?.scored, first?.correct], [0, 0, { question: '0' }, 1, 1]);
    assert.deepEqual(first?.samples[0], { id: 'e:0:0', state: 'done', reward: 0.5, stopReason: 'completed' });
    assert.equal(first?.samples[1]?.failure?.code, 'evaluate-failed');
    assert.deepEqual(
      second?.samples.map(({ id, state }) => [id, state]),
      [
        ['e:1:0', 'queued'],
        ['e:1:1', 'queued'],
      ],
    );
    const last = await store.evaluationTasks(e, { from: 2, limit: 9 });
    assert.deepEqual([last.length, last[0]?.index, last[0]?.samples], [1, 2, []]);
    assert.deepEqual(await store.evaluationTasks(evaluationId.parse('none'), { from: 0, limit: 9 }), []);
  });

  test('evaluations are listed in pages and by state', async () => {
    await using bed = await openTimedBed(openBed);
    for (const id of ['x', 'y', 'z']) await bed.store.createEvaluation({ ...makeEvaluation(), id: evaluationId.parse(id) });
    await bed.store.cancelEvaluation(evaluationId.parse('y'));
    const list = async (filter: Parameters<Store['evaluations']>[0]) => {
      const { evaluations, next } = await bed.store.evaluations(filter);
      return { ids: evaluations.map(({ id }) => id).join(), next };
    };
    const { ids, next = '' } = await list({ limit: 2 });
    assert.equal(ids, 'x,y');
    assert.deepEqual(await list({ limit: 2, after: next }), { ids: 'z', next: undefined });
    assert.deepEqual(await list({ limit: 9, state: 'cancelled' }), { ids: 'y', next: undefined });
  });

  test('an evaluation is deleted as a whole after its time, and an open one never', async () => {
    await using bed = await openTimedBed(openBed);
    const { store } = bed;
    const worker = await registerWorker(store, 'w');
    await store.createEvaluation(makeEvaluation({ count: 1 }));
    await store.createEvaluation({ ...makeEvaluation(), id: evaluationId.parse('open') });
    await begin(store, 0, 1);
    const [a, b] = await store.claim(worker, 2);
    assert.ok(a && b);
    await finish(store, a, 1);
    bed.clock.advance(5000);
    await store.retain({ endedMs: 1000, eventsMs: 1000 });
    assert.ok(await store.get(a.id), 'a sample stays while its evaluation is open');
    await finish(store, b, 1);
    bed.clock.advance(5000);
    assert.equal(await store.retain({ endedMs: 1000, eventsMs: 1000 }), 2);
    assert.equal(await store.evaluation(e), undefined);
    assert.equal(await store.get(a.id), undefined);
    assert.equal(await store.trajectory(a.id), undefined);
    assert.equal((await store.evaluation(evaluationId.parse('open')))?.state, 'open');
  });
}
