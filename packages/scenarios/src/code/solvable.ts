// Refuses tasks of the code scenario that no program could solve, with the field: a mistake in a task must not look like a policy that fails.

import type { z } from 'zod';
import { gradeInThread } from '../verifier/graders.ts';
import { isShort } from '../verifier/read-row.ts';
import { findTestFault, type TestFault } from './test-fault.ts';

interface SolvableFields {
  readonly language: string;
  readonly function_name?: string | undefined;
  readonly tests: readonly { readonly input: string; readonly output: string; readonly alternatives?: readonly string[] | undefined }[];
  readonly test_code?: object | undefined;
  readonly checker?: object | undefined;
}

/** A promise for long tests only. */
export function refuseUnsolvable(task: SolvableFields, context: z.RefinementCtx): void | Promise<void> {
  const refuse = (path: (string | number)[], message: string) => context.addIssue({ code: 'custom', path, message });
  if (task.test_code !== undefined) {
    if (task.language !== 'python' || task.function_name !== undefined || task.checker !== undefined)
      refuse(['test_code'], 'needs Python, and takes neither function_name nor checker');
    if (task.tests.length > 0) refuse(['tests'], 'test_code takes the place of tests: give one of them');
    return;
  }
  if (task.tests.length === 0) refuse(['tests'], 'there are no tests, so nothing can be measured');
  if (task.function_name === undefined) return;
  const report = (found: TestFault | undefined) => found && refuse(['tests', found.at, found.field], faults[found.field]);
  if (isShort(task.tests)) report(findTestFault(task.tests));
  else return gradeInThread(findTestFault, [task.tests] as const, {}).then(report);
}

const faults = {
  input: 'the arguments of a function must be a JSON list',
  output: 'the expected result of a function must be JSON: true, not True',
};
