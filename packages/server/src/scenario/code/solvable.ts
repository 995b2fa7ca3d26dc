// Refuses tasks of the code scenario that no program could solve, with the field: a mistake in a task must not look like a policy that fails.

import type { z } from 'zod';
import { parseExact } from './output/exact-json.ts';

export interface SolvableFields {
  readonly language: string;
  readonly function_name?: string | undefined;
  readonly tests: readonly { readonly input: string; readonly output: string; readonly alternatives?: readonly string[] | undefined }[];
  readonly test_code?: object | undefined;
  readonly checker?: object | undefined;
}

export function refuseUnsolvable(task: SolvableFields, context: z.RefinementCtx): void {
  const refuse = (path: (string | number)[], message: string) => context.addIssue({ code: 'custom', path, message });
  if (task.test_code !== undefined) {
    if (task.language !== 'python' || task.function_name !== undefined || task.checker !== undefined)
      refuse(['test_code'], 'needs Python, and takes neither function_name nor checker');
    if (task.tests.length > 0) refuse(['tests'], 'test_code takes the place of tests: give one of them');
    return;
  }
  if (task.tests.length === 0) refuse(['tests'], 'there are no tests, so nothing can be measured');
  if (task.function_name === undefined) return;
  const at = task.tests.findIndex((test) => faultOf(test) !== undefined);
  const fault = faultOf(task.tests[at]);
  if (fault !== undefined) refuse(['tests', at, fault], faults[fault]);
}

const faults = {
  input: 'the arguments of a function must be a JSON list',
  output: 'the expected result of a function must be JSON: true, not True',
};

function faultOf(test: SolvableFields['tests'][number] | undefined): keyof typeof faults | undefined {
  if (test === undefined) return undefined;
  if (!isJson(test.input, Array.isArray)) return 'input';
  return [test.output, ...(test.alternatives ?? [])].some((one) => isJson(withoutNan(one))) ? undefined : 'output';
}

function isJson(text: string, isRight: (value: unknown) => boolean = () => true): boolean {
  try {
    return isRight(parseExact(text));
  } catch {
    return false;
  }
}

/** Python's JSON has these, and results with them are compared as text. */
const withoutNan = (text: string): string => text.replace(/-?\bInfinity\b|\bNaN\b/g, '0');
