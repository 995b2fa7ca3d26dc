// A scenario in one file: the agent gets a CSV file and is asked for the sum of a column. It has the built-in bash tool and one tool
// of this scenario. `millrace serve --scenarios scenario.ts` serves it as `column-sum`; docs/scenarios.md explains every part.

import { defineScenario, defineTool, ScenarioError, z } from 'millrace/scenario';

const file = '/workspace/data.csv';

const preview = defineTool({
  name: 'preview',
  description: 'Show the first lines of data.csv.',
  parameters: z.object({ lines: z.int().min(1).max(20).default(5).describe('How many lines to show.') }),
  async run({ lines }, { sandbox, timeoutMs, signal }) {
    const result = await sandbox.exec(['head', '-n', String(lines), file], { timeoutMs, signal });
    return result.exitCode === 0 ? result.stdout.toString('utf8') : 'data.csv cannot be read';
  },
});

export const scenario = defineScenario({
  name: 'column-sum',
  task: z.strictObject({
    rows: z.array(z.array(z.number())).min(1).describe('The content of data.csv.'),
    column: z.int().min(1).describe('The column to sum, from 1.'),
  }),

  sandbox: () => ({}),

  async init({ task, sandbox, signal }) {
    await sandbox.writeFile(file, `${task.rows.map((row) => row.join(',')).join('\n')}\n`, { signal });
    const content = `What is the sum of column ${task.column} of data.csv? Call finish with the number as the answer.`;
    return { messages: [{ role: 'user', content }], tools: ['bash', preview, 'finish'] };
  },

  evaluate({ task, end }) {
    const cells = task.rows.map((row) => row[task.column - 1]);
    if (cells.includes(undefined)) throw new ScenarioError('task', `a row has no column ${task.column}`);
    const sum = cells.reduce((total: number, cell = 0) => total + cell, 0);
    return { reward: Number(end.answer) === sum ? 1 : 0, details: { sum, answer: end.answer } };
  },
});
