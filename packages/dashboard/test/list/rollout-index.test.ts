// The index of the dashboard's list: filters, orders and windows of a hundred thousand rollouts, and what is counted over them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type BriefQuery, type BriefRollout, dashboardRoutes, groupId, rolloutId } from '@millrace/protocol';
import type { BriefSource } from '../../src/list/brief.ts';
import { RolloutIndex } from '../../src/list/rollout-index.ts';
import { summarise } from '../../src/list/summary.ts';

const timings = {
  queued_ms: 1,
  init_ms: 2,
  ready_ms: 0,
  run_ms: 10,
  cache_wait_ms: 0,
  evaluate_wait_ms: 0,
  evaluate_ms: 3,
  model_ms: 8,
  tool_ms: 1,
};

function makeSource(number: number, fields: { reward?: number; group?: string; version?: number; code?: 'init-failed' } = {}): BriefSource {
  const { reward, code } = fields;
  return {
    id: rolloutId.parse(`r-${number}`),
    scenario: number % 2 === 0 ? 'math' : 'shell',
    group: fields.group === undefined ? null : groupId.parse(fields.group),
    state: code === undefined ? 'done' : 'failed',
    attempt: 1,
    result:
      reward === undefined
        ? null
        : {
            reward,
            score: {},
            stop_reason: 'completed',
            turns: number % 5,
            tokens: { prompt: 10, sampled: number, observation: 0 },
            malformed_calls: 0,
            policy_versions: { first: fields.version ?? 1, last: fields.version ?? 1 },
            backends: [],
            timings,
          },
    failure:
      code === undefined
        ? null
        : { code, message: `setup of ${number} failed`, blame: 'task', retryable: false, stage: 'init', attempt: 1 },
    created_at: new Date(number * 1000).toISOString(),
    ended_at: new Date(number * 1000 + 500).toISOString(),
    metadata: { batch: 'step-1', tag: `T${number}` },
  };
}

function ask(index: RolloutIndex, query: Partial<BriefQuery>): ReturnType<RolloutIndex['page']> {
  return index.page(dashboardRoutes.rollouts.query.parse(query));
}

const idsOf = (rows: readonly BriefRollout[]) => rows.map(({ id }) => id);

test('rollouts are listed newest first, and older ones can be added below', () => {
  const index = new RolloutIndex(() => 0);
  for (const number of [3, 2, 1]) index.set(makeSource(number), { older: true });
  index.set(makeSource(4));
  assert.deepEqual(idsOf(ask(index, {}).rows), ['r-4', 'r-3', 'r-2', 'r-1']);
  assert.deepEqual(idsOf(ask(index, { order: 'asc', offset: 1, limit: 2 }).rows), ['r-2', 'r-3']);
});

test('filters combine, and the text looks through ids, errors and metadata', () => {
  const index = new RolloutIndex(() => 0);
  for (let number = 1; number <= 6; number++) index.set(makeSource(number, { reward: number / 6, version: number }));
  index.set(makeSource(7, { code: 'init-failed' }));
  const find = (query: Partial<BriefQuery>) => idsOf(ask(index, { ...query, order: 'asc' }).rows);
  assert.deepEqual(find({ scenario: 'math', reward_min: 0.5 }), ['r-4', 'r-6']);
  assert.deepEqual(find({ reward_max: 0.2 }), ['r-1']);
  assert.deepEqual(find({ rewarded: 'no' }), ['r-7']);
  assert.deepEqual(find({ blame: 'task' }), ['r-7']);
  assert.deepEqual(find({ code: 'init-failed', state: 'failed' }), ['r-7']);
  assert.deepEqual(find({ text: 'SETUP of' }), ['r-7']);
  assert.deepEqual(find({ text: 't3' }), ['r-3']);
  assert.deepEqual(find({ version: 5 }), ['r-5']);
  assert.deepEqual(find({ batch: 'step-2' }), []);
  assert.equal(ask(index, { batch: 'step-1' }).total, 7);
});

test('lines without a value come last in both orders of a sort', () => {
  const index = new RolloutIndex(() => 0);
  index.set(makeSource(1, { reward: 0.5 }));
  index.set(makeSource(2));
  index.set(makeSource(3, { reward: 1 }));
  assert.deepEqual(idsOf(ask(index, { sort: 'reward' }).rows), ['r-3', 'r-1', 'r-2']);
  assert.deepEqual(idsOf(ask(index, { sort: 'reward', order: 'asc' }).rows), ['r-1', 'r-3', 'r-2']);
});

test('windows of one moment come from one list, and show the current state of each line', () => {
  let now = 0;
  const index = new RolloutIndex(() => now);
  for (let number = 1; number <= 4; number++) index.set(makeSource(number));
  index.markComplete();
  assert.deepEqual(idsOf(ask(index, { limit: 2 }).rows), ['r-4', 'r-3']);
  index.set(makeSource(5));
  index.move('r-2', 'run', 2);
  const second = ask(index, { limit: 2, offset: 2 });
  assert.deepEqual(idsOf(second.rows), ['r-2', 'r-1']);
  assert.equal(second.rows[0]?.state, 'run');
  now = 1000;
  assert.equal(ask(index, {}).total, 5);
});

test('a hundred thousand rollouts are filtered and sorted', () => {
  const index = new RolloutIndex(() => 0);
  for (let number = 1; number <= 100_000; number++) index.set(makeSource(number, { reward: (number % 101) / 100 }));
  const { total, rows } = ask(index, { sort: 'reward', scenario: 'math', offset: 49_000, limit: 100 });
  assert.equal(total, 50_000);
  assert.equal(rows.length, 100);
  assert.ok((rows[0]?.reward ?? 0) >= (rows[99]?.reward ?? 0));
});

test('failures are grouped by code with the newest example, and rewards by version and scenario', () => {
  const index = new RolloutIndex(() => 0);
  index.set(makeSource(7, { code: 'init-failed' }));
  index.set(makeSource(9, { code: 'init-failed' }));
  index.set(makeSource(2, { reward: 0, group: 'g', version: 3 }));
  index.set(makeSource(4, { reward: 1, group: 'g', version: 3 }));
  const { failures, versions } = index.summary();
  assert.deepEqual(
    failures.map(({ code, blame, count, example }) => [code, blame, count, example.id]),
    [['init-failed', 'task', 2, 'r-9']],
  );
  assert.deepEqual(
    versions.map(({ version, scenario, rollouts, mean_reward, solved, informative }) => [
      version,
      scenario,
      rollouts,
      mean_reward,
      solved,
      informative,
    ]),
    [[3, 'math', 2, 0.5, 0.5, 1]],
  );
  assert.deepEqual(summarise([]), { scenarios: [], failures: [], versions: [] });
});
