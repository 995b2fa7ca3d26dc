// The stem scenario: questions of science with a choice, a quantity or a short text as their answer. It needs no sandbox,
// unless the task gives the agent tools that do.

import { labelOf, needsSandbox } from '../../agent/tool-names.ts';
import { findAnswer } from '../answer/find-answer.ts';
import { tryTexts } from '../answer/own-solution.ts';
import { shapeReward } from '../reward/shaping.ts';
import { withoutRoutingFields } from '../routing-fields.ts';
import { answerOf, questionOf, type Row } from '../row.ts';
import type { Scenario } from '../scenario.ts';
import { findChoice, letterOf } from './choice.ts';
import type { Judge } from './judge.ts';
import { findQuantity, isSameQuantity } from './quantity.ts';
import { isSameText } from './short-text.ts';
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
      const { given, correctness } = await judgeText(task, end.answer, { judge, signal });
      const measured = { correctness, hasFormat: findAnswer(end.answer)?.from === 'box', sampledTokens };
      return shapeReward(task.shaping, measured, { given: given.slice(0, maxGivenLength) });
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

async function judgeText(task: StemTask, text: string, means: Means) {
  const given = task.kind === 'choice' ? findChoice(text, task.options) : task.kind === 'text' ? textOf(text) : (findQuantity(text) ?? '');
  const isRead = given !== '' && (!task.require_box || findAnswer(text)?.from === 'box');
  return { given, correctness: isRead && (await isRight(task, given, means)) ? 1 : 0 };
}

async function isRight(task: StemTask, given: string, { judge, signal }: Means): Promise<boolean> {
  switch (task.kind) {
    case 'choice':
      return given === [...new Set(task.answer)].sort().join('');
    case 'numeric': {
      const rule = { relative: task.relative_tolerance, absolute: task.absolute_tolerance, isUnitRequired: task.unit_required };
      return [task.answer].flat().some((answer) => isSameQuantity(given, answer, rule));
    }
    case 'text': {
      const answers = [task.answer].flat();
      if (answers.some((answer) => isSameText(given, answer))) return true;
      return task.judge && (await judge.isSame({ question: task.question, expected: answers.join(' OR '), given }, signal));
    }
  }
}

/** The box or the announced answer; otherwise a reply of one line. */
function textOf(answer: string): string {
  const found = findAnswer(answer);
  if (found?.from === 'box' || found?.from === 'sentence') return found.text;
  const lines = answer
    .trim()
    .split('\n')
    .filter((line) => line.trim() !== '');
  return lines.at(-1)?.trim().slice(0, 1000) ?? '';
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
