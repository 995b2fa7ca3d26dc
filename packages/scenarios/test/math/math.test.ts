// The math scenario rewards right answers, and shapes the reward.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mathScenario } from '../../src/math/math.ts';
import type { EvaluateContext } from '../../src/scenario.ts';

async function rewardOf(task: Record<string, unknown>, answer: string, sampledTokens = 10): Promise<number> {
  const parsed = await mathScenario.task.safeParseAsync({ question: 'q', ...task });
  assert.ok(parsed.success);
  const context = { task: parsed.data, end: { stopReason: 'completed', answer }, sampledTokens } as unknown as EvaluateContext<
    typeof parsed.data
  >;
  return (await mathScenario.evaluate(context)).reward;
}

test('an answer in another form is right, and any of several expected ones counts', async () => {
  assert.equal(await rewardOf({ answer: '\\frac{1}{2}' }, 'So it is \\boxed{0.5}.'), 1);
  assert.equal(await rewardOf({ answer: ['1', '2'] }, 'The answer is 2.'), 1);
  assert.equal(await rewardOf({ answer: 'We get $\\boxed{7}$.' }, '\\boxed{7}'), 1);
  assert.equal(await rewardOf({ answer: '7' }, '\\boxed{8}'), 0);
  assert.equal(await rewardOf({ answer: '7' }, ''), 0);
});

test('an expected answer that the grader cannot match with itself is refused, with the field', async () => {
  for (const answer of ['', ' ', '\\frac{1}{2', '5}', ['7', '$$']]) {
    const parsed = await mathScenario.task.safeParseAsync({ question: 'q', answer });
    assert.equal(parsed.success, false, JSON.stringify(answer));
    assert.equal(parsed.error?.issues[0]?.path[0], 'answer');
  }
});

test('format and length shape the reward', async () => {
  const shaping = { correctness: 0.8, format: 0.2, length: { weight: 0.5, free_tokens: 100, limit_tokens: 200 } };
  assert.equal(await rewardOf({ answer: '7', shaping }, 'The answer is 7.'), 0.8);
  assert.equal(await rewardOf({ answer: '7', shaping }, '\\boxed{7}'), 1);
  assert.equal(await rewardOf({ answer: '7', shaping }, '\\boxed{7}', 500), 0.5);
});

test('a row of verl becomes a task with the tools of ProRL Agent', () => {
  const instance = { prompt: [{ role: 'user', content: 'q' }], reward_model: { ground_truth: 7 } };
  assert.deepEqual(mathScenario.fromInstance?.(instance), {
    question: 'q',
    answer: '7',
    tools: ['ipython', 'think', 'finish'],
    require_box: true,
  });
});
