// The mapping to ProRL Agent's wire format, by tables.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { submission } from '@millrace/protocol';
import { toBackendUrl, toMessages, toProcessReply, toWantedId } from '../../../src/http/prorl/prorl-mapping.ts';
import type { RolloutRecord } from '../../../src/store/rollout-record.ts';
import { makeFailure, makeResult, makeTrajectory, toId } from '../floor.ts';

const id = toId('a');
const record: RolloutRecord = {
  id,
  submission: submission.parse({ scenario: 'sums', task: {} }),
  state: 'done',
  attempt: 1,
  retries: 0,
  losses: 0,
  failures: [],
  createdAtMs: 0,
};

test('each assistant message carries its sampled tokens and the full prompt before them', () => {
  assert.deepEqual(toMessages(makeTrajectory('a')), [
    { role: 'user', content: 'hello' },
    {
      role: 'assistant',
      content: 'look',
      tool_calls: [{ id: 'call-1', type: 'function', function: { name: 'bash', arguments: '{"command":"ls"}' } }],
      token_ids: [4, 5],
      input_ids: [1, 2, 3],
      logprobs: [-0.5, -0.25],
    },
    { role: 'tool', content: 'file', tool_call_id: 'call-1', name: 'bash' },
    { role: 'assistant', content: 'done', token_ids: [8, 9], input_ids: [1, 2, 3, 4, 5, 6, 7], logprobs: [-1, -2] },
  ]);
});

test('timings are in seconds, and waiting is not counted', () => {
  const { timing } = toProcessReply({}, { ...record, result: makeResult() }, undefined);
  assert.deepEqual(timing, { init_time: 1, run_time: 2, eval_time: 3, others_time: 1, counted_elapsed: 6, timeout_triggered: false });
});

test('a rollout is resolved only by a reward of nearly one', () => {
  for (const [reward, resolved] of [
    [1, true],
    [0.995, true],
    [0.99, false],
    [0, false],
  ] as const) {
    const reply = toProcessReply({}, { ...record, result: makeResult({ reward }) }, undefined);
    assert.deepEqual([reply.resolved, reply.reward, reply.filter], [resolved, reward, false]);
  }
});

test('a failure is filtered, has no reward rather than zero, and names its stage', () => {
  const table: readonly [Partial<RolloutRecord>, string][] = [
    [{ failure: makeFailure({ stage: 'init', code: 'init-failed' }) }, 'init'],
    [{ failure: makeFailure({ stage: 'run' }) }, 'run'],
    [{ failure: makeFailure({ stage: 'evaluate', code: 'evaluate-failed' }), result: makeResult({ reward: null }) }, 'eval'],
    [{ failure: makeFailure({ stage: 'evaluate', code: 'evaluate-timeout' }) }, 'timeout'],
    [{ failure: makeFailure({ stage: null, code: 'worker-lost' }) }, 'init'],
    [{ state: 'cancelled' }, 'init'],
    [{ state: 'cancelled', result: makeResult({ reward: null }) }, 'run'],
  ];
  for (const [fields, critical] of table) {
    const reply = toProcessReply({}, { ...record, state: 'failed', ...fields }, undefined);
    assert.deepEqual(
      [reply.critical_error, reply.filter, reply.reward, reply.success, reply.resolved],
      [critical, true, null, false, false],
    );
    assert.deepEqual(reply.messages, []);
  }
});

test('an agent that timed out but was evaluated keeps its reward, and the timeout is reported', () => {
  const reply = toProcessReply({}, { ...record, result: makeResult({ reward: 0, stop_reason: 'rollout_timeout' }) }, undefined);
  assert.deepEqual([reply.filter, reply.reward, reply.critical_error, reply.timing.timeout_triggered], [false, 0, null, true]);
  assert.deepEqual([reply.finish, reply.end_properly], [false, false]);
});

test('ids come from the job, otherwise from instance and trajectory, in allowed characters', () => {
  const wanted = (job_id: string | undefined, instance = {}) => toWantedId({ job_id, instance, sampling_params: {} });
  assert.equal(wanted('job 1/x'), 'job-1-x');
  assert.equal(wanted('__a'), 'a');
  assert.equal(wanted('x'.repeat(500))?.length, 128);
  assert.equal(wanted(undefined, { instance_id: 'django__1', trajectory_id: 0 }), 'django__1-0');
  assert.equal(wanted(undefined, { instance_id: 'django__1' }), undefined);
  assert.equal(wanted('☃'), undefined);
});

test('addresses lose their /v1 and get a scheme', () => {
  for (const address of ['http://h:1', 'http://h:1/', 'http://h:1/v1', 'http://h:1/v1/', 'h:1', 'h:1/v1'])
    assert.equal(toBackendUrl(address), 'http://h:1');
  assert.equal(toBackendUrl('https://h/base/v1'), 'https://h/base');
});

test('after a rewritten history, a message has only the prompt of its own branch', () => {
  const { segments } = makeTrajectory('a');
  const [prompt, sampled] = [segments[0], segments.find(({ kind }) => kind === 'sampled')];
  if (!prompt || !sampled) assert.fail('the trajectory has neither prompt nor turn');
  const rewritten = [...segments, { ...prompt, branch: 1, tokenIds: Int32Array.of(8, 9) }, { ...sampled, branch: 1 }];
  const said = toMessages({ segments: rewritten }).filter(({ role }) => role === 'assistant');
  assert.deepEqual(said.at(-1)?.input_ids, [8, 9]);
  assert.deepEqual(said.at(-1)?.token_ids, [...sampled.tokenIds]);
});
