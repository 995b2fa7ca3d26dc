// The math scenario: a question with a short answer that is compared by value. It needs no sandbox.

import { z } from 'zod';
import { isSameAnswer } from '../answer/compare-answers.ts';
import { findAnswer } from '../answer/find-answer.ts';
import { shapeReward, shaping } from '../reward/shaping.ts';
import type { Scenario } from '../scenario.ts';

const maxGivenLength = 500;

const mathTask = z.strictObject({
  question: z.string().min(1),
  answer: z
    .union([z.string().min(1), z.array(z.string().min(1)).min(1)])
    .describe('The expected answer, in LaTeX or as text; a list if any of several is right. Never shown to the agent.'),
  shaping,
});

type MathTask = z.infer<typeof mathTask>;

export const mathScenario: Scenario<MathTask> = {
  name: 'math',
  aliases: ['deepscaler'],
  task: mathTask,
  fromInstance: (instance) => ({ question: questionOf(instance), answer: answerOf(instance) }),
  async init({ task }) {
    return { messages: [{ role: 'user', content: `${task.question}\n\nPut your final answer into \\boxed{}.` }], tools: [] };
  },
  lowestReward: ({ shaping: { range } }) => range[0],
  async evaluate({ task, end, sampledTokens }) {
    const given = findAnswer(end.answer);
    const truths = [task.answer].flat().map((answer) => (answer.includes('\\boxed') ? (findAnswer(answer)?.text ?? answer) : answer));
    const same = given !== undefined && truths.some((truth) => isSameAnswer(given.text, truth));
    const measured = { correctness: same ? 1 : 0, hasFormat: given?.from === 'box', sampledTokens };
    return shapeReward(task.shaping, measured, { given: given?.text.slice(0, maxGivenLength) ?? '' });
  },
};

const chatPrompt = z.array(z.object({ role: z.string(), content: z.string() }));

function questionOf(instance: Readonly<Record<string, unknown>>): unknown {
  const prompt = chatPrompt.safeParse(instance.prompt);
  if (prompt.success) return prompt.data.filter((message) => message.role === 'user').at(-1)?.content;
  return instance.question ?? instance.problem ?? instance.problem_statement ?? instance.prompt;
}

function answerOf(instance: Readonly<Record<string, unknown>>): unknown {
  const model = z.object({ ground_truth: z.union([z.string(), z.number()]) }).safeParse(instance.reward_model);
  return model.success ? String(model.data.ground_truth) : instance.answer;
}
