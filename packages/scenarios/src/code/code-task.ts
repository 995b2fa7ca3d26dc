// The task of the code scenario, and rows of data sets that are accepted in its place.

import { z } from 'zod';
import { shaping } from '../reward/shaping.ts';
import { toolChoice } from '../tools/tool-names.ts';
import { languageNames } from './languages.ts';
import { fromRow } from './rows/rows.ts';
import { refuseUnsolvable } from './solvable.ts';

const test = z.strictObject({
  input: z.string().describe('Standard input; for a function, its arguments as a JSON list.'),
  output: z.string().describe('The expected output; for a function, what it returns, as JSON.'),
  alternatives: z.array(z.string()).optional().describe('Other outputs that are right too.'),
});

const checker = z.strictObject({
  language: z.enum(languageNames).default('python'),
  source: z.string().min(1),
  arguments: z
    .array(z.enum(['input', 'output', 'answer']))
    .min(1)
    .default(['input', 'output', 'answer'])
    .describe(
      "The files that it gets as its arguments: the test's input, the program's output, the expected output. The default is testlib's order.",
    ),
  verdict: z
    .enum(['exit_code', 'stdout'])
    .default('exit_code')
    .describe('Exit code 0 accepts; or the number that it prints, from 0 to 1, of which 1 accepts.'),
  time_limit_s: z.number().gt(0).max(60).default(10),
});

const testCode = z.strictObject({
  functions: z
    .array(z.string().min(1))
    .min(1)
    .describe('Names of functions of the program, or `Solution().name`. The first is also `candidate`.'),
  setup: z.string().default('').describe('Python code before each case: imports, functions, values.'),
  cases: z.array(z.string().min(1)).min(1).describe('Python code with assertions, one test each: `assert f(1) == 2`.'),
});

export const codeFields = z.strictObject({
  question: z.string().min(1),
  starter_code: z.string().default('').describe('Shown to the agent after the question.'),
  language: z.enum(languageNames).default('python'),
  function_name: z
    .string()
    .min(1)
    .optional()
    .describe('The function, or the method of a class Solution, to call (Python only). Without it, tests use standard input and output.'),
  tests: z.array(test).default([]).describe('Never shown to the agent, and never readable for its program.'),
  test_code: testCode
    .optional()
    .describe(
      'Assertions in place of `tests` (Python). They run in a sandbox of their own and see what the functions of the program return.',
    ),
  time_limit_s: z.number().gt(0).max(120).default(6).describe('CPU time of one test.'),
  memory_limit_mib: z.int().min(16).max(65_536).default(1024).describe('Memory of one test.'),
  compare: z
    .enum(['lines', 'words'])
    .default('lines')
    .describe('Whether the ends of lines in an output matter. Space at ends and between words never does.'),
  float_tolerance: z.number().min(0).max(1).default(0).describe('For numbers that are written as decimals. 0: equal by value.'),
  checker: checker.optional().describe('A program that decides whether an output is right, for tasks with more than one right output.'),
  credit: z
    .enum(['all', 'partial'])
    .default('all')
    .describe('`all`: 1 if every test passes, and tests stop at the first failure. `partial`: the share that passes.'),
  tools: toolChoice
    .default([])
    .describe(
      'With tools that need one, the agent has a sandbox, and the program is its file in /workspace (solution.py, solution.cpp, Main.java), or the code block in its answer.',
    ),
  submit: z
    .enum(['file', 'answer'])
    .default('file')
    .describe('With tools: whether the file is the program, or only the code block in the answer, as for ProRL Agent.'),
  solution: z.string().min(1).optional().describe('A program that passes, for `millrace task check`. Never shown to the agent.'),
  image: z.string().min(1).optional().describe('The image of the sandboxes; needs python3, and what compiles and runs the language.'),
  shaping,
});

export const codeTask = z.preprocess(
  fromRow,
  codeFields
    .refine(
      (task) => task.function_name === undefined || (task.language === 'python' && task.checker === undefined),
      'function_name needs Python, and takes no checker',
    )
    .superRefine(refuseUnsolvable),
);

export type CodeTask = z.infer<typeof codeFields>;
export type CodeChecker = z.infer<typeof checker>;
