// The math scenario: a question with a short answer that a rule checks. It needs no sandbox.

import { z } from 'zod';
import { isSameAnswer, parseAnswer } from './math-answer.ts';
import type { Scenario } from './scenario.ts';

const mathTask = z.strictObject({
  question: z.string().min(1),
  answer: z.string().min(1).describe('The expected answer; never shown to the agent.'),
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
  async evaluate({ task, end }) {
    const given = parseAnswer(end.answer);
    const same = given !== undefined && isSameAnswer(given, task.answer);
    return { reward: same ? 1 : 0, details: { given: given ?? '' } };
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
