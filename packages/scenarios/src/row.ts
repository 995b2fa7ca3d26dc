// A row of a data set, as all scenarios read it: a column without a value is absent, whether the file leaves it out or writes null.

import { z } from 'zod';

export type Row = Readonly<Record<string, unknown>>;

export const isRow = (value: unknown): value is Row => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The columns with a value: tables write null into those that only other rows have. */
export const toColumns = (row: Row): Record<string, unknown> =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null && value !== undefined));

const chatPrompt = z.array(z.object({ role: z.string(), content: z.string() }));

/** The question of a row of verl or ProRL Agent: the last message of the user in `prompt`, or a column with the text. */
export function questionOf(row: Row): unknown {
  const { data } = chatPrompt.safeParse(row.prompt);
  if (data) return withoutInstruction(data.filter((message) => message.role === 'user').at(-1)?.content);
  return row.question ?? row.problem ?? row.problem_statement ?? row.prompt;
}

const truth = z.union([z.string(), z.number()]).transform(String);
const rewardModel = z.object({ ground_truth: z.union([truth, z.array(truth)]) });

/** The answer of such a row, or a list of which any is right. */
export function answerOf(row: Row): unknown {
  const model = rewardModel.safeParse(row.reward_model);
  return model.success ? model.data.ground_truth : row.answer;
}

/** Rows of DeepScaleR and Eurus end with an instruction of their own; the prompts of the scenarios have it. */
const withoutInstruction = (question: string | undefined): string | undefined =>
  question
    ?.replace(/ {0,4}Let's think step by step and output the final answer within \\boxed\{\}\.?\s{0,8}$/, '')
    .replace(/\s{0,8}Write Python code to solve the problem\. Present the code in \n```python\nYour code\n```\nat the end\.\s{0,8}$/, '');

/** What ProRL Agent's clients add to a task for their own routing. A task of our own shape is strict, so these must not reach it. */
const routingFields = ['data_source', 'instance_id', 'trajectory_id', 'data_kind', 'extra_info'] as const;

/** The instance without its routing fields, except those that the scenario's tasks have too. */
export function withoutRoutingFields(
  instance: Readonly<Record<string, unknown>>,
  keep: readonly (typeof routingFields)[number][] = [],
): Record<string, unknown> {
  const removed: ReadonlySet<string> = new Set(routingFields.filter((name) => !keep.includes(name)));
  return Object.fromEntries(Object.entries(instance).filter(([name]) => !removed.has(name)));
}
