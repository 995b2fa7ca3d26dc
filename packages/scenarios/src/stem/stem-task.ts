// The task of the stem scenario: a question with a choice, a quantity or a short text as its answer.

import { z } from 'zod';
import { ownSolution } from '../own-solution.ts';
import { shaping } from '../reward/shaping.ts';
import { toolChoice } from '../tools/tool-names.ts';
import { readQuantity } from './quantity.ts';
import { isSameText } from './short-text.ts';

const common = {
  question: z.string().min(1),
  solution: ownSolution,
  tools: toolChoice.default([]),
  require_box: z.boolean().default(false).describe('Whether an answer outside `\\boxed{}` is wrong.'),
  shaping,
};

/** One text or several, each of which the grader can accept. */
const textsThat = (isUsable: (text: string) => boolean, message: string) => {
  const text = z.string().min(1).refine(isUsable, message);
  return z.union([text, z.array(text).min(1)]);
};

const choiceTask = z
  .strictObject({
    ...common,
    kind: z.literal('choice'),
    options: z.array(z.string()).min(2).max(26).describe('Shown after the question as A, B, C …'),
    answer: z
      .string()
      .regex(/^[A-Z]+$/)
      .describe('The right letter, or several: AC.'),
  })
  .refine(({ options, answer }) => [...answer].every((letter) => letter.charCodeAt(0) - 65 < options.length), {
    path: ['answer'],
    message: 'a letter without an option',
  });

const numericTask = z.strictObject({
  ...common,
  kind: z.literal('numeric'),
  answer: textsThat((text) => Number.isFinite(readQuantity(text)?.value), 'not a number, with or without a unit').describe(
    'A number, with its unit if it has one: 9.81 m/s^2.',
  ),
  relative_tolerance: z.number().min(0).max(1).default(0.01),
  absolute_tolerance: z.number().min(0).default(0),
  unit_required: z
    .boolean()
    .default(false)
    .describe('Whether an answer without a unit is wrong. Units that can be converted are converted.'),
});

const textTask = z.strictObject({
  ...common,
  kind: z.literal('text'),
  answer: textsThat((text) => isSameText(text, text), 'a text without letters or digits').describe(
    'The expected text; a list if any of several is right. Compared without case, articles and punctuation; case counts in chemical formulas.',
  ),
  judge: z.boolean().default(false).describe('Whether a text that differs goes to the LLM judge of the configuration.'),
});

export const stemTask = z.discriminatedUnion('kind', [choiceTask, numericTask, textTask]);

export type StemTask = z.infer<typeof stemTask>;
