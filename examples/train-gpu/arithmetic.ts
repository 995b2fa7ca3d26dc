// Arithmetic with a strict answer: only an integer in the last \boxed{} counts. The built-in `math` scenario also finds answers without a
// box, so a policy could not be seen to learn the format. A task with `tools` gets a sandbox.

import { defineScenario, z } from 'millrace/scenario';

export const scenario = defineScenario({
  name: 'arithmetic',
  task: z.strictObject({
    question: z.string().min(1),
    answer: z.int(),
    kind: z.string().min(1).describe('The kind of question, for statistics.'),
    tools: z.array(z.literal('ipython')).max(1).default([]),
  }),

  sandbox: ({ tools }) => (tools.length > 0 ? {} : undefined),

  init({ task }) {
    return { messages: [{ role: 'user', content: task.question }], tools: task.tools };
  },

  evaluate({ task, end }) {
    const given = [...end.answer.matchAll(/\\boxed\{\s*(-?\d{1,12})\s*\}/g)].at(-1)?.[1];
    return { reward: given !== undefined && Number(given) === task.answer ? 1 : 0, details: { given: given ?? '', kind: task.kind } };
  },
});
