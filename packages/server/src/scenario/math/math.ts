// The math scenario: a question with a short answer that is compared by value. It needs no sandbox, unless the task gives the agent tools
// that do.

import { z } from 'zod';
import { Prompts } from '../../agent/prompts.ts';
import { labelOf, needsSandbox, toolChoice } from '../../agent/tool-names.ts';
import { isSameAnswer } from '../answer/compare-answers.ts';
import { findAnswer } from '../answer/find-answer.ts';
import { goldTexts, ownSolution, tryTexts } from '../answer/own-solution.ts';
import { shapeReward, shaping } from '../reward/shaping.ts';
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
  // ProRL Agent gives its math tasks these tools.
  fromInstance: (instance) => ({ question: questionOf(instance), answer: answerOf(instance), tools: ['ipython', 'think', 'finish'] }),
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

function judgeText({ answer }: Pick<MathTask, 'answer'>, text: string): JudgedText {
  const given = findAnswer(text);
  const truths = [answer].flat().map((one) => (one.includes('\\boxed') ? (findAnswer(one)?.text ?? one) : one));
  const same = given !== undefined && truths.some((truth) => isSameAnswer(given.text, truth));
  return { given: given?.text ?? '', correctness: same ? 1 : 0, hasFormat: given?.from === 'box' };
}

function renderQuestion({ question, tools }: MathTask, prompts: Prompts): string {
  if (tools.length === 0) return prompts.render('math', { question });
  const ending = tools.includes('finish') ? 'call finish with your final answer in \\boxed{}' : 'put your final answer into \\boxed{}';
  return prompts.render('math-tools', { question, tools: tools.map(labelOf).join(', '), ending });
}

const chatPrompt = z.array(z.object({ role: z.string(), content: z.string() }));

function questionOf(instance: Readonly<Record<string, unknown>>): unknown {
  const prompt = chatPrompt.safeParse(instance.prompt);
  if (prompt.success) return withoutInstruction(prompt.data.filter((message) => message.role === 'user').at(-1)?.content);
  return instance.question ?? instance.problem ?? instance.problem_statement ?? instance.prompt;
}

function answerOf(instance: Readonly<Record<string, unknown>>): unknown {
  const answer = z.union([z.string(), z.number()]).transform(String);
  const model = z.object({ ground_truth: z.union([answer, z.array(answer)]) }).safeParse(instance.reward_model);
  return model.success ? model.data.ground_truth : instance.answer;
}

/** DeepScaleR's rows end with an instruction of their own; the scenario's prompt has it. */
function withoutInstruction(question: string | undefined): string | undefined {
  return question?.replace(/ *Let's think step by step and output the final answer within \\boxed\{\}\.?\s*$/, '');
}
