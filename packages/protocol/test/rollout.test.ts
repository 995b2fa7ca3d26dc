// The table of moves, the defaults of a submission, and ids.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canMove, isTerminal, moves, rolloutId, rolloutStates, sampling, submission } from '@millrace/protocol';

test('a rollout moves forward by one stage or from run to its end, back to the queue from any stage, and nowhere after its end', () => {
  const order = ['queued', 'init', 'ready', 'run', 'evaluate', 'done'] as const;
  for (const from of rolloutStates) {
    for (const to of rolloutStates) {
      const live = !isTerminal(from);
      const forward = from !== 'done' && to === order[order.indexOf(from as 'queued') + 1] && live;
      const back = live && from !== 'queued' && to === 'queued';
      const out = live && (to === 'failed' || to === 'cancelled');
      const judged = from === 'run' && to === 'done';
      assert.equal(canMove(from, to), forward || judged || back || out, `${from} to ${to}`);
    }
  }
});

test('the terminal states are done, failed and cancelled, and every state can be reached', () => {
  assert.deepEqual(rolloutStates.filter(isTerminal), ['done', 'failed', 'cancelled']);
  const reached = new Set(Object.values(moves).flat());
  assert.deepEqual(
    rolloutStates.filter((state) => !reached.has(state)),
    [],
  );
});

test('a submission with only scenario and task gets every default', () => {
  assert.deepEqual(submission.parse({ scenario: 'math', task: {} }), {
    scenario: 'math',
    task: {},
    sampling: {
      temperature: 1,
      top_p: 1,
      top_k: 0,
      min_p: 0,
      repetition_penalty: 1,
      presence_penalty: 0,
      frequency_penalty: 0,
      max_tokens: 4096,
    },
    limits: {
      max_turns: 50,
      max_context_tokens: 32_768,
      init_timeout_s: 300,
      run_timeout_s: 1800,
      evaluate_timeout_s: 600,
      tool_timeout_s: 60,
      max_retries: 2,
    },
  });
});

test('a caller who sets one field keeps the defaults of the others', () => {
  const { limits, sampling } = submission.parse({ scenario: 'math', task: {}, limits: { max_turns: 3 }, sampling: { seed: 7 } });
  assert.deepEqual([limits.max_turns, limits.run_timeout_s, sampling.seed, sampling.temperature], [3, 1800, 7, 1]);
});

test('ids are safe in a path, a file name and a log line', () => {
  for (const good of ['a', 'A-1', 'r-0.1:2_x', '0', 'x'.repeat(128)]) assert.ok(rolloutId.safeParse(good).success, good);
  for (const bad of ['', '.', '..', '-a', '_a', 'a/b', 'a b', 'a\n', 'ä', 'a\u0000', 'x'.repeat(129)])
    assert.ok(!rolloutId.safeParse(bad).success, bad);
});

test('sampling that an engine would refuse or silently change is refused with the field named', () => {
  for (const [field, values] of [
    ['temperature', [2.01, 0.005, -1, Number.NaN]],
    ['repetition_penalty', [2.5, 0]],
    ['presence_penalty', [-2.5, 2.5]],
    ['frequency_penalty', [3]],
    ['top_p', [0, 1.1]],
    ['min_p', [-0.1]],
    ['top_k', [-1, 0.5]],
  ] as const)
    for (const value of values) {
      const { error } = sampling.safeParse({ [field]: value });
      assert.deepEqual(
        error?.issues.map(({ path }) => path),
        [[field]],
        `${field} ${value}`,
      );
    }
  for (const fine of [{ temperature: 0 }, { temperature: 0.01 }, { temperature: 2 }, { repetition_penalty: 2 }])
    assert.ok(sampling.safeParse(fine).success, JSON.stringify(fine));
});
