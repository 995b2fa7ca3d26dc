// The solution that a task with a short answer brings along, for `millrace task check`: a text that ends with the answer, as an agent would
// write it.

import { z } from 'zod';
import type { TaskTrial } from './scenario.ts';

export const ownSolution = z
  .string()
  .min(1)
  .optional()
  .describe('A solution in words that ends with the answer, for `millrace task check`. Never shown to the agent.');

interface Solved {
  readonly solution?: string | undefined;
  readonly answer: string | readonly string[];
}

/** The texts that must be right: the task's own solution, and every expected answer in a box. */
export function goldTexts({ solution, answer }: Solved): readonly string[] {
  const boxes = [answer].flat().map((one) => (one.includes('\\boxed') ? one : `\\boxed{${one}}`));
  return solution === undefined ? boxes : [solution, ...boxes];
}

/** What judging the gold texts, or an empty one, says about the task. */
export async function tryTexts(
  task: Solved,
  solution: 'gold' | 'empty',
  judge: (text: string) => Promise<{ readonly given: string; readonly correctness: number }>,
): Promise<TaskTrial> {
  for (const text of solution === 'gold' ? goldTexts(task) : ['']) {
    const { given, correctness } = await judge(text);
    if (correctness < 1) {
      const from = text === task.solution ? 'the solution' : 'the expected answer';
      const seen = given === '' ? 'has no answer that can be found' : `is read as ${given.slice(0, 200)}`;
      return { isRight: false, tests: {}, why: `${from} ${seen}, and ${[task.answer].flat().join(' or ')} is expected` };
    }
  }
  return { isRight: true, tests: {} };
}
