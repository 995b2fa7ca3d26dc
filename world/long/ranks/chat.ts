// Three turns without tools: the user asks again, so that a rollout comes back to its server.

import { defineScenario, z } from 'millrace/scenario';

const questions = ['Tell me about rivers.', 'And about mills?', 'Thank you. One more word about wheels.'];

export const scenario = defineScenario({
  name: 'chat',
  task: z.strictObject({}),
  init() {
    let asked = 0;
    return {
      messages: [{ role: 'user', content: questions[0] ?? '' }],
      tools: [],
      respond() {
        asked += 1;
        return questions[asked] ?? { finish: 'done' };
      },
    };
  },
  evaluate: () => ({ reward: 1 }),
});
