// A scenario of your own in one file: the agent is given a CSV file and asked for the sum of a column.
// `millrace serve --scenarios examples/own-scenario/scenario.ts` knows it as `column-sum`.

import type { Scenario } from '@millrace/server';
import { z } from 'zod';

const task = z.strictObject({ rows: z.array(z.array(z.number())).min(1), column: z.int().min(1) });

export const scenario: Scenario<z.infer<typeof task>> = {
  name: 'column-sum',
  task,
  sandbox: () => ({}),

  async init({ task: { rows, column }, sandbox, signal }) {
    await sandbox.writeFile('/workspace/data.csv', `${rows.map((row) => row.join(',')).join('\n')}\n`, { signal });
    const content = `What is the sum of column ${column} of data.csv? Call finish with the number as the answer.`;
    return { messages: [{ role: 'user', content }], tools: ['bash', 'finish'] };
  },

  async evaluate({ task: { rows, column }, end }) {
    const sum = rows.reduce((total, row) => total + (row[column - 1] ?? 0), 0);
    return { reward: Number(end.answer) === sum ? 1 : 0, details: { sum } };
  },
};
