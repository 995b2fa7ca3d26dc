// The mapping to ProRL Agent's wire format, by tables.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { submission } from '@millrace/protocol';
import { codeScenario } from '@millrace/scenarios';
import type { RolloutRecord } from '@millrace/store';
import { toBackendUrl, toProcessReply, toTask, toWantedId } from '../../../src/http/prorl/prorl-mapping.ts';
import { makeFailure, makeResult, toId } from '../floor.ts';

const id = toId('a');
const timeoutS = 300;
const record: RolloutRecord = {
  id,
  digest: 'd',
  submission: submission.parse({ scenario: 'sums', task: {} }),
  state: 'done',
  attempt: 1,
  retries: 0,
  losses: 0,
  failures: [],
  createdAtMs: 0,
};

test('timings are in seconds, and waiting is not counted', () => {
  const { timing } = toProcessReply({}, { ...record, result: makeResult() }, { timeoutS });
  assert.deepEqual(timing, { init_time: 1, run_time: 2, eval_time: 3, others_time: 1, counted_elapsed: 6, timeout_triggered: false });
});

test('a rollout is resolved only by a reward of nearly one', () => {
  for (const [reward, resolved] of [
    [1, true],
    [0.995, true],
    [0.99, false],
    [0, false],
  ] as const) {
    const reply = toProcessReply({}, { ...record, result: makeResult({ reward }) }, { timeoutS });
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
    const reply = toProcessReply({}, { ...record, state: 'failed', ...fields }, { timeoutS });
    assert.deepEqual(
      [reply.critical_error, reply.filter, reply.reward, reply.success, reply.resolved],
      [critical, true, null, false, false],
    );
    assert.deepEqual(reply.messages, []);
  }
});

test('an agent that timed out keeps the reward that was measured, but is not resolved', () => {
  const reply = toProcessReply({}, { ...record, result: makeResult({ reward: 1, stop_reason: 'rollout_timeout' }) }, { timeoutS });
  assert.deepEqual([reply.filter, reply.reward, reply.resolved, reply.critical_error], [true, 1, false, 'timeout']);
  assert.deepEqual([reply.finish, reply.end_properly, reply.timing.timeout_triggered], [false, false, true]);
});

test('a rollout that the policy ended itself, with the lowest reward, is trained on', () => {
  const failure = makeFailure({ code: 'sandbox-killed', blame: 'policy' });
  const reply = toProcessReply({}, { ...record, failure, result: makeResult({ reward: 0, stop_reason: null }) }, { timeoutS });
  assert.deepEqual([reply.success, reply.error, reply.filter, reply.reward, reply.critical_error], [true, null, false, 0, null]);
  assert.equal(reply.failure?.code, 'sandbox-killed');
});

test('ids come from the job, otherwise from instance and trajectory, in allowed characters', () => {
  const wanted = (job_id: string | undefined, instance = {}) => toWantedId({ job_id, instance });
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

test("a code task of our own shape, with what ProRL Agent's clients add to it, is the same task", () => {
  const task = { question: 'Double it.', tests: [{ input: '4\n', output: '8\n' }], credit: 'partial' };
  const added = { data_source: 'code', instance_id: 'a', trajectory_id: 3, data_kind: 'train', extra_info: { index: 7 } };
  const parsed = codeScenario.task.safeParse(toTask(codeScenario, { ...task, ...added }));
  assert.ok(parsed.success);
  assert.deepEqual(parsed, codeScenario.task.safeParse(task));
  const row = { question: 'Double it.', input_output: { inputs: ['4'], outputs: ['8'] } };
  assert.deepEqual(toTask(codeScenario, { ...row, ...added }), row);
});
