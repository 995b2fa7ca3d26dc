// Search-R1's loop in one file: the agent writes <search>…</search> inside its own turn, the scenario appends what it found as
// <information>…</information>, and the agent goes on until it writes <answer>…</answer>. docs/scenarios.md explains every part.

import { defineScenario, z } from 'millrace/scenario';

const documents = new Map([
  ['france', 'Paris is the capital of France.'],
  ['paris', 'Paris has 2.1 million inhabitants.'],
]);

/** Your retriever goes here. */
function search(query: string): string {
  const found = [...documents].filter(([word]) => query.toLowerCase().includes(word)).map(([, text]) => text);
  return found.join('\n') || 'Nothing was found.';
}

const rules = `Answer the question. Whenever you lack a fact, write <search>what you look for</search>, and read the result between
<information> and </information>. Write your answer as <answer>…</answer>.`;

export const scenario = defineScenario({
  name: 'search',
  task: z.strictObject({ question: z.string(), answer: z.string() }),

  init: ({ task }) => ({
    messages: [{ role: 'user', content: `${rules}\n\n${task.question}` }],
    tools: [],
    sampling: { stop: ['</search>', '</answer>'], include_stop_str_in_output: true },
    respond({ text, stoppedBy }) {
      if (stoppedBy !== '</search>') return { finish: /<answer>(.*)<\/answer>$/s.exec(text)?.[1]?.trim() ?? '' };
      const query = /<search>(.*)<\/search>$/s.exec(text)?.[1] ?? '';
      return { append: `\n\n<information>${search(query)}</information>\n\n` };
    },
  }),

  evaluate: ({ task, end }) => ({
    reward: end.answer.toLowerCase() === task.answer.toLowerCase() ? 1 : 0,
    details: { answer: end.answer },
  }),
});
