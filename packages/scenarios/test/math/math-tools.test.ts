// The math scenario: its tools, and ProRL Agent's instances.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '@millrace/protocol';
import { mathScenario } from '../../src/math/math.ts';

async function read(data: unknown) {
  const parsed = await mathScenario.task.safeParseAsync(data);
  if (!parsed.success) throw new Error(JSON.stringify(parsed.error.issues));
  return parsed.data;
}

async function open(data: unknown) {
  const context = { task: await read(data), limits: limits.parse({}), signal: new AbortController().signal };
  return mathScenario.init({
    ...context,
    get sandbox(): never {
      throw new Error('it uses no sandbox');
    },
  });
}

async function score(data: unknown, answer: string) {
  const rest = { limits: limits.parse({}), signal: new AbortController().signal, artifact: Buffer.alloc(0), sampledTokens: 0 };
  const openSandbox = () => Promise.reject(new Error('it needs none'));
  const { reward } = await mathScenario.evaluate({
    task: await read(data),
    end: { stopReason: 'completed', answer },
    openSandbox,
    ...rest,
  });
  return reward;
}

test('without tools the agent answers at once and has no sandbox', async () => {
  const task = { question: '1 + 1?', answer: '2' };
  assert.deepEqual(await open(task), {
    messages: [{ role: 'user', content: '1 + 1?\n\nPut your final answer into \\boxed{}.' }],
    tools: [],
  });
  assert.equal(mathScenario.sandbox?.(await read(task)), undefined);
});

test('a task chooses its tools, and has a sandbox if one of them needs it', async () => {
  const task = { question: '1 + 1?', answer: '2', tools: ['ipython', 'finish'] };
  const { messages, tools } = await open(task);
  assert.deepEqual(tools, ['ipython', 'finish']);
  assert.match(messages[0]?.content ?? '', /1 \+ 1\?[\s\S]*ipython, finish[\s\S]*call finish with your final answer in \\boxed\{\}/);
  assert.deepEqual(mathScenario.sandbox?.(await read(task)), {});
  assert.equal(mathScenario.sandbox?.(await read({ ...task, tools: ['think', 'finish'] })), undefined);
});

test("ProRL Agent's instances become tasks with its tools, without the instruction that the data set adds", async () => {
  const instruction = "Let's think step by step and output the final answer within \\boxed{}.";
  const task = mathScenario.fromInstance?.({
    data_source: 'deepscaler',
    prompt: [{ role: 'user', content: `What is 6 × 7? ${instruction}` }],
    reward_model: { style: 'rule', ground_truth: [42, '42.0'] },
  });
  assert.deepEqual(task, { question: 'What is 6 × 7?', answer: ['42', '42.0'], tools: ['ipython', 'think', 'finish'], require_box: true });
});

test('of a list of answers any is right', async () => {
  const task = { question: 'q', answer: ['0.5', 'one half'] };
  assert.deepEqual([await score(task, 'It is \\boxed{0.50}.'), await score(task, '\\boxed{1}')], [1, 0]);
});
