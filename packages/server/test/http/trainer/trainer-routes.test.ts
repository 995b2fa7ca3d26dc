// What trainers post back, over HTTP: recomputed logprobs are compared with the recorded ones, and a difference that grows raises an alarm.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { backendId, type Trajectory, trainerSampleList, trainerStepList, trainerStepView } from '@millrace/protocol';
import { type Floor, makeResult, makeTrajectory, openFloor } from '../floor.ts';

const recorded = [-0.5, -1, -0.25, -2];

/** Two turns on two backends, two tokens each. */
function makeTurns(id: string): Trajectory {
  const segment = (turn: number, backend: string) => ({
    kind: 'sampled' as const,
    turn,
    text: 'ab',
    messages: [],
    backend: backendId.parse(backend),
    policy_versions: { first: 3, last: 3 },
    tokenIds: Int32Array.from([turn, turn + 1]),
    logprobs: Float32Array.from(recorded.slice(2 * turn - 2, 2 * turn)),
  });
  const prompt = {
    kind: 'prompt' as const,
    turn: 0,
    text: 'p',
    messages: [],
    tokenIds: Int32Array.from([9]),
    logprobs: new Float32Array(),
  };
  return { ...makeTrajectory(id), segments: [prompt, segment(1, 'a:1'), segment(2, 'b:1')] };
}

async function finish(floor: Floor): Promise<string> {
  const id = await floor.submit();
  await floor.worker.register();
  await floor.worker.finish(await floor.worker.claim(id), { state: 'done', result: makeResult(), trajectory: makeTurns(id) });
  return id;
}

function near(value: number | undefined, expected: number): void {
  assert.ok(Math.abs((value ?? Number.NaN) - expected) < 1e-6, `${value} is not ${expected}`);
}

test('recomputed logprobs are compared by backend, and the step is read again with its samples', async () => {
  await using floor = await openFloor();
  const id = await finish(floor);
  const logprobs = [-0.5, -1.5, -0.25, -3];
  const sample = { rollout_id: id, advantage: 0.5, logprobs };
  const { status, body } = await floor.call('POST', '/v1/trainer/steps', {
    step: 1,
    policy_version: 4,
    loss: 0.25,
    metrics: { lr: 0.1 },
    samples: [sample, { rollout_id: 'gone', logprobs: [-1] }],
  });
  assert.equal(status, 200, JSON.stringify(body));
  const step = trainerStepView.parse(body);
  assert.deepEqual([step.run, step.samples, step.unknown_samples, step.alarm], ['default', 1, 1, null]);
  assert.deepEqual(
    step.mismatch.map(({ backend, policy_version, tokens }) => [backend, policy_version, tokens]),
    [
      ['a:1', 3, 2],
      ['b:1', 3, 2],
    ],
  );
  near(step.mismatch[0]?.mean_abs, 0.25);
  near(step.mismatch[1]?.mean_abs, 0.5);
  near(step.mismatch[1]?.most_abs, 1);
  near(step.mismatch[1]?.kl, (Math.exp(-1) - 1 + 1) / 2);
  const list = trainerStepList.parse((await floor.call('GET', '/v1/trainer/steps')).body);
  assert.deepEqual([list.steps, list.next, list.runs.map(({ run, steps }) => [run, steps])], [[step], null, [['default', 1]]]);
  const { samples } = trainerSampleList.parse((await floor.call('GET', `/v1/rollouts/${id}/trainer`)).body);
  assert.deepEqual(
    samples.map(({ at: _, ...rest }) => rest),
    [{ ...sample, branch: 0, run: 'default', step: 1, policy_version: 4 }],
  );
});

test('a list that is not as long as the sampled tokens is refused by name, and nothing is stored', async () => {
  await using floor = await openFloor();
  const id = await finish(floor);
  for (const field of ['logprobs', 'advantages', 'kl']) {
    const { status, body } = await floor.call('POST', '/v1/trainer/steps', { step: 1, samples: [{ rollout_id: id, [field]: [-1] }] });
    assert.equal(status, 400);
    assert.match(body.error.message, new RegExp(`${field} of rollout ${id}: it has 1 numbers, and 4 tokens were sampled`));
  }
  const { steps } = trainerStepList.parse((await floor.call('GET', '/v1/trainer/steps')).body);
  assert.deepEqual(steps, []);
});

test('a mismatch that grows raises an alarm, in the reply, in the list and in the metrics', async () => {
  await using floor = await openFloor();
  const id = await finish(floor);
  const post = async (step: number, shift: number) => {
    const samples = [{ rollout_id: id, logprobs: recorded.map((value) => value + shift) }];
    return trainerStepView.parse((await floor.call('POST', '/v1/trainer/steps', { step, samples })).body).alarm;
  };
  for (const step of [1, 2, 3, 4]) assert.equal(await post(step, 0.03), null);
  assert.match((await post(5, 0.3)) ?? '', /0\.300 nats .* it was 0\.030 before/);
  let shown = '';
  while (!/millrace_trainer_logprob_alarm\{run="default"\} 1/.test(shown)) {
    await setImmediate(); // the metrics follow the event log
    shown = (await floor.app.inject('/metrics')).body;
  }
  assert.match(shown, /millrace_trainer_logprob_mismatch\{run="default"\} 0\.(3|29)/);
});

test('a backend that is far from the others is named', async () => {
  await using floor = await openFloor();
  const id = await finish(floor);
  const logprobs = recorded.map((value, at) => value + (at < 2 ? 0.001 : 0.5));
  const { body } = await floor.call('POST', '/v1/trainer/steps', { step: 1, samples: [{ rollout_id: id, logprobs }] });
  assert.match(body.alarm, /of b:1 are 0\.500 nats .*; of the other backends, 0\.001/);
});

test('a key that may only read cannot post steps; one that may submit can', async () => {
  const [submit, read] = ['submit-key-0123456789', 'reader-key-0123456789'];
  await using floor = await openFloor({ config: { submitKeys: [submit], readKeys: [read] } });
  const post = async (key: string) =>
    (
      await floor.app.inject({
        method: 'POST',
        url: '/v1/trainer/steps',
        headers: { authorization: `Bearer ${key}` },
        payload: { step: 1 },
      })
    ).statusCode;
  assert.deepEqual([await post(read), await post(submit)], [403, 200]);
});
