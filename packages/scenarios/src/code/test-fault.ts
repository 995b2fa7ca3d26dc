// Finds the first test of a function that no program could pass, since its texts are not JSON. Pure, for a grader's thread.

import { parseExact } from './output/exact-json.ts';

interface FunctionTest {
  readonly input: string;
  readonly output: string;
  readonly alternatives?: readonly string[] | undefined;
}

export interface TestFault {
  readonly at: number;
  readonly field: 'input' | 'output';
}

export function findTestFault(tests: readonly FunctionTest[]): TestFault | undefined {
  for (const [at, test] of tests.entries()) {
    const field = faultOf(test);
    if (field !== undefined) return { at, field };
  }
  return undefined;
}

function faultOf({ input, output, alternatives = [] }: FunctionTest): TestFault['field'] | undefined {
  if (!isJson(input, Array.isArray)) return 'input';
  return [output, ...alternatives].some((one) => isJson(withoutNan(one))) ? undefined : 'output';
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
