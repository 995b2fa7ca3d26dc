// A user's scenario whose code some answers take along with its worker, as a pattern that never ends or a native library would.

import { setImmediate } from 'node:timers';
import type { Scenario } from '@millrace/scenarios';
import { z } from 'zod';

const task = z.strictObject({ question: z.string(), isBroken: z.boolean().default(false) });

const deaths: Readonly<Record<string, () => unknown>> = {
  crash: () => process.kill(process.pid, 'SIGKILL'),
  abort: () => process.abort(),
  stray: () => setImmediate(() => Promise.reject(new Error('no one waits for this'))),
  memory: () => {
    const kept: number[][] = [];
    for (;;) kept.push(Array.from({ length: 100_000 }, Math.random));
  },
  freeze: () => /^(a+)+$/.test(`${'a'.repeat(60)}!`),
};

/** Returns if the answer is harmless, and does not if it is deadly. */
async function die(answer: string): Promise<void> {
  const death = deaths[answer];
  if (!death) return;
  death();
  await new Promise(() => {});
}

export const scenario: Scenario<z.infer<typeof task>> = {
  name: 'deadly',
  task,
  init: ({ task: { question } }) => ({
    messages: [{ role: 'user', content: question }],
    tools: ['finish'],
    respond: async ({ text }) => {
      await die(text);
      return { finish: text };
    },
  }),
  lowestReward: () => -1,
  async evaluate({ task: { isBroken }, end: { answer } }) {
    await die(isBroken ? 'crash' : answer);
    return { reward: answer === 'right' ? 1 : 0 };
  },
};
