// The scenario of the trainers' tests: a sum that needs no sandbox. An agent that thinks aloud is asked once more, and the chat template
// then drops its reasoning, which starts a new branch. For an answer that says so the ruler is away, and the rollout has no reward.

import { defineScenario, ScenarioError, z } from 'millrace/scenario';

export const scenario = defineScenario({
  name: 'sums',
  task: z.strictObject({
    question: z.string().describe('What the agent reads.'),
    answer: z.string().describe('The right answer.'),
  }),

  init({ task }) {
    return {
      messages: [{ role: 'user', content: task.question }],
      tools: [],
      respond: ({ text, number }) => (number === 1 && text.includes('wait') ? 'Go on.' : { finish: text.trim() }),
    };
  },

  evaluate({ task, end }) {
    if (end.answer?.includes('unmeasurable')) throw new ScenarioError('sandbox', 'the ruler is away');
    return { reward: end.answer === task.answer ? 1 : 0 };
  },
});
