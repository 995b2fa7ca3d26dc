// A scenario with everything that an adapter must carry: turns with tools, a context that is compacted into a second branch, and a rollout
// whose verifier fails, which therefore has no reward.

import { defineScenario, defineTool, ScenarioError, z } from 'millrace/scenario';

const look = defineTool({
  name: 'look',
  description: 'Look at a shelf.',
  parameters: z.object({ shelf: z.string() }),
  run: ({ shelf }) => `On the shelf "${shelf}" are 3 books and 2 "cups".\n`,
});

export const scenario = defineScenario({
  name: 'trial',
  task: z.strictObject({
    kind: z.enum(['tools', 'branches', 'unscored']),
    question: z.string().min(1),
    answer: z.string().min(1),
  }),

  init({ task }) {
    const system = { role: 'system' as const, content: 'Answer briefly.' };
    return { messages: [system, { role: 'user', content: `${task.kind}: ${task.question}` }], tools: [look, 'finish'] };
  },

  async compact() {
    return [{ role: 'user', content: 'You looked at every shelf. Finish now.' }];
  },

  evaluate({ task, end }) {
    if (task.kind === 'unscored') throw new ScenarioError('verifier', 'the verifier has no ruler today');
    return { reward: end.answer === task.answer ? 1 : 0.25, details: { length: end.answer?.length ?? 0 } };
  },
});
