// The task of the swe scenario: a repository with a bug, its description, and tests that show the repair. Rows of data sets are accepted in
// its place. The patch and the tests never enter a sandbox of the agent.

import { leastMemoryMiB } from '@millrace/sandbox';
import { z } from 'zod';
import { shaping } from '../../reward/shaping.ts';
import { toolChoice } from '../../tools/tool-names.ts';
import { logParserNames } from '../logs/parse-log.ts';
import { fromRow } from '../rows/from-row.ts';

const absolute = z.string().regex(/^\/[^\0]*$/, 'an absolute path');

export const sweFields = z.strictObject({
  instance_id: z.string().min(1),
  repo: z.string().min(1).describe('The name of the repository, such as `psf/requests`.'),
  base_commit: z.string().default('HEAD').describe('The commit that the agent starts from. Everything after it is removed.'),
  problem_statement: z.string().min(1).describe('Shown to the agent.'),
  image: z.string().min(1).optional().describe('The image that holds the repository and its environment.'),
  workdir: absolute.default('/testbed').describe('Where the repository is.'),
  setup: z
    .string()
    .default('')
    .describe('A bash script that runs in every sandbox of the task before anything else. It may make the repository.'),
  setup_patch: z.string().default('').describe('A patch that puts the bug into the repository. The history is then removed.'),
  activate: z
    .string()
    .default('')
    .describe('Bash code that runs in the shell of the agent and before the tests, such as `conda activate testbed`.'),
  hidden: z.array(absolute).default([]).describe("Files and folders that are removed from the agent's sandbox."),
  test_setup: z.string().default('').describe('A bash script that runs in the repository before the tests.'),
  test_command: z.string().min(1).describe('Bash code that runs the tests in the repository. Its output is the log.'),
  test_patch: z.string().default('').describe('A patch with the tests. The files that it names are restored before it is applied.'),
  FAIL_TO_PASS: z.array(z.string().min(1)).default([]).describe('Tests that the repair must make pass.'),
  PASS_TO_PASS: z.array(z.string().min(1)).default([]).describe('Tests that must still pass.'),
  expected: z
    .record(z.string(), z.string())
    .optional()
    .describe('The status of every test, for data sets that want exactly this map. Replaces the two lists.'),
  log_parser: z.enum(logParserNames).default('pytest'),
  eval_type: z.enum(['pass_and_fail', 'fail_only']).default('pass_and_fail'),
  test_timeout_s: z.number().gt(0).max(36_000).default(1800),
  protected: z
    .array(z.string().min(1))
    .default([])
    .describe('More paths in the repository that a patch must not change: they are restored before the tests. A folder ends with a slash.'),
  patch: z.string().default('').describe('The reference solution, for `millrace task check`. Never shown to the agent.'),
  tools: toolChoice.min(1).default(['bash', 'str_replace_editor', 'finish']),
  memory_mib: z.int().min(leastMemoryMiB).optional(),
  disk_mib: z.int().min(64).optional(),
  shaping,
});

export type SweTask = z.infer<typeof sweFields>;

export const sweTask = z.preprocess(
  fromRow,
  sweFields.refine(
    ({ FAIL_TO_PASS, expected }) => FAIL_TO_PASS.length > 0 || expected !== undefined,
    'FAIL_TO_PASS is empty: without a test that the repair makes pass, nothing can be measured',
  ),
);
