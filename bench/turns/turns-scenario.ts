// A scenario for benchmarks: any number of turns, no machine, reward 1. Its cost is the cost of the service.

import type { Scenario } from '@millrace/scenarios';
import { z } from 'zod';

const task = z.strictObject({ words: z.int().min(0).default(0).describe('Length of the opening.') });

export const scenario: Scenario<z.infer<typeof task>> = {
  name: 'turns',
  task,
  async init({ task: { words } }) {
    return { messages: [{ role: 'user', content: `Begin.${' word'.repeat(words)}` }], tools: ['bash', 'finish'] };
  },
  async evaluate() {
    return { reward: 1 };
  },
};
