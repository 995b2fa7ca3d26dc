// The math scenario: a question with a short answer that is compared by value. It needs no sandbox, unless the task gives the agent tools
// that do.

import { z } from 'zod';
import { Prompts } from '../../agent/prompts.ts';
import { labelOf, needsSandbox, toolChoice } from '../../agent/tool-names.ts';
import { isSameAnswer } from '../answer/compare-answers.ts';
import { findAnswer } from '../answer/find-answer.ts';
import { goldTexts, ownSolution, tryTexts } from '../answer/own-solution.ts';
import { shapeReward, shaping } from '../reward/shaping.ts';
import { answerOf, questionOf } from '../row.ts';
import type { Scenario } from '../scenario.ts';

const maxGivenLength = 500;

/** One that the grader cannot match with itself would make the task unsolvable. */
const expected = z
  .string()
  .min(1)
  .refine((one) => goldTexts({ answer: one }).every((text) => judgeText({ answer: one }, text).correctness === 1), {
    message: 'an answer that cannot be read back from a box: check its braces',
  });

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

interface JudgedText {
  readonly given: string;
  readonly correctness: number;
  readonly hasFormat: boolean;
}

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
  async evaluate({ task, end, sampledTokens }) {
    const { given, correctness, hasFormat } = judgeText(task, end.answer);
    return shapeReward(task.shaping, { correctness, hasFormat, sampledTokens }, { given: given.slice(0, maxGivenLength) });
  },
  trial: ({ task, solution }) => tryTexts(task, solution, async (text) => judgeText(task, text)),
};

interface ExpectedAnswer {
  readonly answer: string | readonly string[];
  readonly require_box?: boolean;
}

function judgeText({ answer, require_box }: ExpectedAnswer, text: string): JudgedText {
  const given = findAnswer(text);
  const truths = [answer].flat().map((one) => (one.includes('\\boxed') ? (findAnswer(one)?.text ?? one) : one));
  const isRead = given !== undefined && (given.from === 'box' || !require_box);
  const same = isRead && truths.some((truth) => isSameAnswer(given.text, truth));
  return { given: given?.text ?? '', correctness: same ? 1 : 0, hasFormat: given?.from === 'box' };
}

function renderQuestion({ question, tools }: MathTask, prompts: Prompts): string {
  if (tools.length === 0) return prompts.render('math', { question });
  const ending = tools.includes('finish') ? 'call finish with your final answer in \\boxed{}' : 'put your final answer into \\boxed{}';
  return prompts.render('math-tools', { question, tools: tools.map(labelOf).join(', '), ending });
}
