// The evaluation routes over a real store, with samples that end when the test says so.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { evaluationTaskPage, evaluationView, type Failure } from '@millrace/protocol';
import { makeFailure } from '@millrace/testkit';
import { keep } from '../batch-floor.ts';
import { type Floor, makeResult, makeTrajectory, openFloor, task } from '../floor.ts';

const request = { id: 'e', scenario: 'deepscaler', n: 2, tasks: [task, task, task], sampling: { temperature: 0.5, max_tokens: 99 } };

async function openEvaluationFloor(fields: Record<string, unknown> = {}): Promise<Floor> {
  const floor = await openFloor();
  await floor.worker.register();
  const made = await floor.call('POST', '/v1/evaluations', { ...request, ...fields });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  await keep(floor);
  return floor;
}

/** A reward, or the failure that left none. */
async function finishAll(floor: Floor, toEnd: (id: string) => number | Failure): Promise<void> {
  for (const claim of await floor.store.claim(floor.worker.id, 1000)) {
    const end = toEnd(claim.id);
    const [result, trajectory] = [makeResult({ reward: typeof end === 'number' ? end : null }), makeTrajectory(claim.id)];
    await floor.worker.finish(claim, typeof end === 'number' ? { state: 'done', result, trajectory } : { state: 'failed', failure: end });
  }
  await keep(floor);
}

test('an evaluation samples every task n times, with its sampling, and reports its numbers', async () => {
  await using floor = await openEvaluationFloor();
  const open = evaluationView.parse((await floor.call('GET', '/v1/evaluations/e')).body);
  assert.deepEqual([open.state, open.scenario, open.samples.begun, open.mean.value], ['open', 'sums', 6, null]);
  const [sample] = (await floor.store.list({ limit: 1 })).rollouts;
  assert.deepEqual([sample?.submission.sampling.temperature, sample?.submission.metadata], [0.5, { evaluation: 'e' }]);
  await finishAll(floor, (id) => (id === 'e:2:1' ? makeFailure('evaluate-timeout', 1) : Number(id.endsWith(':0'))));
  const done = evaluationView.parse((await floor.call('GET', '/v1/evaluations/e?wait=9')).body);
  assert.deepEqual(done.samples, { total: 6, begun: 6, ended: 6, scored: 5, unscored: 1, correct: 3 });
  assert.deepEqual([done.state, done.mean.value, done.mean.lower, done.mean.tasks], ['done', 0.6, 0.5, 3]);
  assert.deepEqual(
    done.pass_at.map(({ k, value, lower, tasks }) => [k, value, lower, tasks]),
    [
      [1, (0.5 + 0.5 + 1) / 3, 0.5, 3],
      [2, 1, 1, 2],
    ],
  );
  assert.deepEqual(done.failures, [{ blame: 'verifier', code: 'evaluate-timeout', samples: 1, scored: 0 }]);
});

test('repeating a request goes on from what is done, and other content under its id is a conflict', async () => {
  await using floor = await openEvaluationFloor();
  await finishAll(floor, () => 1);
  const again = await floor.call('POST', '/v1/evaluations', request);
  assert.deepEqual([again.status, again.body.state, again.body.samples.ended], [200, 'done', 6]);
  const other = await floor.call('POST', '/v1/evaluations', { ...request, n: 3 });
  assert.deepEqual([other.status, other.body.error.code], [409, 'conflict']);
});

test('what has no reward is taken again, and the rest is not', async () => {
  await using floor = await openEvaluationFloor();
  await finishAll(floor, (id) => (id.endsWith(':1') ? makeFailure('backend-failed', 1) : 1));
  const retried = await floor.call('POST', '/v1/evaluations/e/retry');
  assert.deepEqual([retried.status, retried.body.state, retried.body.samples.ended], [200, 'open', 3]);
  await finishAll(floor, () => 0);
  const { body } = await floor.call('GET', '/v1/evaluations/e');
  assert.deepEqual([body.state, body.mean.value, body.samples.unscored, body.failures], ['done', 0.5, 0, []]);
  assert.equal((await floor.call('POST', '/v1/evaluations/none/retry')).status, 404);
  await floor.call('POST', '/v1/evaluations', { ...request, id: 'gone' });
  await floor.call('DELETE', '/v1/evaluations/gone');
  assert.equal((await floor.call('POST', '/v1/evaluations/gone/retry')).status, 409);
});

test('a threshold decides what is correct', async () => {
  await using floor = await openEvaluationFloor({ correct_at: 0.5, id: 'half' });
  await finishAll(floor, (id) => (id.endsWith(':0') ? 0.5 : 0.25));
  const { body } = await floor.call('GET', '/v1/evaluations/half');
  assert.deepEqual([body.samples.correct, body.correct_at], [3, 0.5]);
});

test('the tasks are read in pages with their samples, while it runs', async () => {
  await using floor = await openEvaluationFloor();
  const first = evaluationTaskPage.parse((await floor.call('GET', '/v1/evaluations/e/tasks?limit=2')).body);
  assert.deepEqual([first.tasks.map(({ index }) => index), first.next], [[0, 1], 2]);
  assert.deepEqual(
    first.tasks[0]?.samples.map(({ rollout, state, reward }) => [rollout, state, reward]),
    [
      ['e:0:0', 'queued', null],
      ['e:0:1', 'queued', null],
    ],
  );
  const last = evaluationTaskPage.parse((await floor.call('GET', '/v1/evaluations/e/tasks?limit=2&from=2')).body);
  assert.deepEqual([last.tasks.length, last.next], [1, null]);
});

test('a large evaluation keeps a short queue, and its samples follow as others end', async () => {
  const tasks = Array.from({ length: 100 }, () => task);
  await using floor = await openEvaluationFloor({ tasks });
  assert.equal((await floor.store.counts()).queued, 64);
  await finishAll(floor, () => 1);
  assert.equal((await floor.store.counts()).queued, 64);
  for (let round = 0; round < 3; round += 1) await finishAll(floor, () => 1);
  const { body } = await floor.call('GET', '/v1/evaluations/e');
  assert.deepEqual([body.state, body.samples.ended, body.mean.value], ['done', 200, 1]);
});

test('a cancelled evaluation starts nothing more, and is listed by its state', async () => {
  await using floor = await openEvaluationFloor();
  const cancelled = await floor.call('DELETE', '/v1/evaluations/e');
  assert.deepEqual([cancelled.status, cancelled.body.state, cancelled.body.samples.unscored], [200, 'cancelled', 6]);
  await keep(floor);
  assert.equal((await floor.store.counts()).queued, 0);
  const ids = async (query: string) =>
    (await floor.call('GET', `/v1/evaluations${query}`)).body.evaluations.map(({ id }: { id: string }) => id);
  assert.deepEqual([await ids(''), await ids('?state=open')], [['e'], []]);
});

test('what is wrong in a request is named', async () => {
  await using floor = await openFloor();
  for (const [fields, status, wanted] of [
    [{ scenario: 'none' }, 400, /scenario: no scenario is named "none"/],
    [{ tasks: [task, { question: 1 }] }, 400, /tasks\[1\]\.question/],
    [{ tasks: [] }, 400, /tasks/],
    [{ n: 0 }, 400, /n: /],
    [{ n: 1.5 }, 400, /n: /],
    [{ target: 3 }, 400, /target: unknown field/],
    [{ id: 'x'.repeat(101) }, 400, /id: an evaluation id has at most 100/],
    [{ n: 1024, tasks: Array.from({ length: 1000 }, () => task) }, 400, /n: 1000 tasks × 1024 samples/],
    [{ sampling: { temperature: 3 } }, 400, /sampling\.temperature/],
  ] as const) {
    const { status: got, body } = await floor.call('POST', '/v1/evaluations', { ...request, ...fields });
    assert.equal(got, status, JSON.stringify(fields).slice(0, 99));
    assert.match(body.error.message, wanted);
  }
  for (const [method, path] of [
    ['GET', ''],
    ['GET', '/tasks'],
    ['DELETE', ''],
  ] as const)
    assert.equal((await floor.call(method, `/v1/evaluations/none${path}`)).status, 404);
});
