// The stem scenario: questions of science with a choice, a quantity or a short text as their answer. It needs no sandbox,
// unless the task gives the agent tools that do.

import { tryTexts } from '../own-solution.ts';
import { shapeReward } from '../reward/shaping.ts';
import { answerOf, questionOf, type Row, withoutRoutingFields } from '../row.ts';
import type { Scenario } from '../scenario.ts';
import { labelOf, needsSandbox } from '../tools/tool-names.ts';
import { gradeInThread } from '../verifier/graders.ts';
import { letterOf } from './choice.ts';
import type { Judge } from './judge.ts';
import { judgeStem } from './judge-stem.ts';
import { isSameQuantity } from './quantity.ts';
import { type StemTask, stemTask } from './stem-task.ts';

const maxGivenLength = 500;
const noJudge = 'this service has no judge: set judge.url and judge.model in its configuration';

export function makeStemScenario(judge: Judge): Scenario<StemTask> {
  return {
    name: 'stem',
    task: stemTask.refine((task) => task.kind !== 'text' || !task.judge || judge.isConfigured, { path: ['judge'], message: noJudge }),
    fromInstance: (instance) => fromInstance(instance, judge),
    sandbox: ({ tools }) => (needsSandbox(tools) ? {} : undefined),
    async init({ task }) {
      return { messages: [{ role: 'user', content: renderQuestion(task) }], tools: task.tools };
    },
    lowestReward: ({ shaping: { range } }) => range[0],
    async evaluate({ task, end, sampledTokens, signal }) {
      const { given, correctness, hasFormat, ...details } = await judgeText(task, end.answer, { judge, signal });
      return shapeReward(task.shaping, { correctness, hasFormat, sampledTokens }, { given: given.slice(0, maxGivenLength), ...details });
    },
    trial: ({ task, solution, signal }) => tryTexts(task, solution, (text) => judgeText(task, text, { judge, signal })),
  };
}

/** ProRL Agent's rows: its tools without the web search, and an answer only from a box. A letter is compared as text, since the options are in the question. */
function fromInstance(instance: Row, { isConfigured }: Judge): unknown {
  const answer = answerOf(instance);
  if ('kind' in instance) return withoutRoutingFields(instance);
  const common = { question: questionOf(instance), answer, tools: ['ipython', 'think', 'finish'], require_box: true };
  const isNumeric = [answer].flat().every((one) => typeof one === 'string' && isSameQuantity(one, one, exactly));
  return isNumeric ? { kind: 'numeric', ...common } : { kind: 'text', ...common, judge: isConfigured };
}

const exactly = { relative: 0, absolute: 0, isUnitRequired: false };

interface Means {
  readonly judge: Judge;
  readonly signal: AbortSignal;
}

async function judgeText(task: StemTask, text: string, { judge, signal }: Means) {
  const controls = () => [task.answer].flat().map((one) => [task, `\\boxed{${one}}`] as const);
  const judged = await gradeInThread(judgeStem, [task, text] as const, { controls, signal });
  if (judged === undefined) return { given: '', correctness: 0, hasFormat: false, exhausted: true };
  const { given, isRight, hasFormat } = judged;
  const asked = { question: task.question, expected: [task.answer].flat().join(' OR '), given };
  const isAsked = task.kind === 'text' && task.judge && given !== '' && (hasFormat || !task.require_box);
  const isSame = isRight || (isAsked && (await judge.isSame(asked, signal)));
  return { given, correctness: isSame ? 1 : 0, hasFormat };
}

const hints: Readonly<Record<StemTask['kind'], string>> = {
  choice: 'Put the letter of your final answer into \\boxed{}.',
  numeric: 'Put your final answer, with its unit, into \\boxed{}.',
  text: 'Put your final answer into \\boxed{}.',
};

function renderQuestion(task: StemTask): string {
  const options = task.kind === 'choice' ? `\n\n${task.options.map((option, at) => `${letterOf(at)}. ${option}`).join('\n')}` : '';
  return `${task.question}${options}\n\n${describeTools(task)}${hints[task.kind]}`;
}

function describeTools({ tools }: StemTask): string {
  const named = tools.filter((name) => name !== 'finish' && name !== 'submit').map(labelOf);
  const use = named.length === 0 ? '' : `You have these tools: ${named.join(', ')}. `;
  return tools.includes('finish') ? `${use}When you are sure, call finish with your answer. ` : use;
}
