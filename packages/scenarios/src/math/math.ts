// The math scenario: a question with a short answer that is compared by value. It needs no sandbox, unless the task gives the agent tools
// that do.

import { z } from 'zod';
import { goldTexts, ownSolution, tryTexts } from '../own-solution.ts';
import { shapeReward, shaping } from '../reward/shaping.ts';
import { answerOf, questionOf } from '../row.ts';
import type { Scenario } from '../scenario.ts';
import { Prompts } from '../tools/prompts.ts';
import { labelOf, needsSandbox, toolChoice } from '../tools/tool-names.ts';
import { gradeInThread } from '../verifier/graders.ts';
import { judgeMath } from './judge-math.ts';

const maxGivenLength = 500;

/** Numbers and words; other expected answers are judged in a thread. */
const plainAnswer = /^[\w ./,-]{1,50}$/;

/** One that the grader cannot match with itself would make the task unsolvable. */
const expected = z.string().min(1).refine(matchesItself, { message: 'an answer that cannot be read back from a box: check its braces' });

const mathTask = z.strictObject({
  question: z.string().min(1),
  answer: z
    .union([expected, z.array(expected).min(1)])
    .describe('The expected answer, in LaTeX or as text; a list if any of several is right. Never shown to the agent.'),
  solution: ownSolution,
  tools: toolChoice.default([]),
  require_box: z.boolean().default(false).describe('Whether an answer outside `\\boxed{}` is wrong.'),
  shaping,
});

interface MathTask extends z.infer<typeof mathTask> {}

type JudgedText = ReturnType<typeof judgeMath> & { readonly exhausted?: true };

export const mathScenario: Scenario<MathTask> = {
  name: 'math',
  aliases: ['deepscaler'],
  task: mathTask,
  // ProRL Agent gives its math tasks these tools, and takes an answer only from a box.
  fromInstance: (instance) => ({
    question: questionOf(instance),
    answer: answerOf(instance),
    tools: ['ipython', 'think', 'finish'],
    require_box: true,
  }),
  sandbox: ({ tools }) => (needsSandbox(tools) ? {} : undefined),
  async init({ task, prompts = new Prompts() }) {
    return { messages: [{ role: 'user', content: renderQuestion(task, prompts) }], tools: task.tools };
  },
  lowestReward: ({ shaping: { range } }) => range[0],
  async evaluate({ task, end, sampledTokens, signal }) {
    const { given, correctness, hasFormat, ...details } = await judgeText(task, end.answer, signal);
    return shapeReward(task.shaping, { correctness, hasFormat, sampledTokens }, { given: given.slice(0, maxGivenLength), ...details });
  },
  trial: ({ task, solution, signal }) => tryTexts(task, solution, (text) => judgeText(task, text, signal)),
};

async function matchesItself(answer: string): Promise<boolean> {
  for (const text of goldTexts({ answer })) {
    const args = [{ answer }, text] as const;
    const judged = plainAnswer.test(answer) ? judgeMath(...args) : await gradeInThread(judgeMath, args, {});
    if (judged?.correctness !== 1) return false;
  }
  return true;
}

async function judgeText(task: MathTask, text: string, signal: AbortSignal): Promise<JudgedText> {
  const expectedOf = { answer: task.answer, require_box: task.require_box };
  const controls = () => goldTexts(task).map((gold) => [expectedOf, gold] as const);
  const judged = await gradeInThread(judgeMath, [expectedOf, text] as const, { controls, signal });
  return judged ?? { given: '', correctness: 0, hasFormat: false, exhausted: true };
}

function renderQuestion({ question, tools }: MathTask, prompts: Prompts): string {
  if (tools.length === 0) return prompts.render('math', { question });
  const ending = tools.includes('finish') ? 'call finish with your final answer in \\boxed{}' : 'put your final answer into \\boxed{}';
  return prompts.render('math-tools', { question, tools: tools.map(labelOf).join(', '), ending });
}
