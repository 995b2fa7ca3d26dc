// Compares what the runs of a program left with what the tests of its task expect; pure, for a grader's thread.

import { isSameOutput, type OutputRule } from './compare-output.ts';
import { isSameJson } from './exact-json.ts';

export interface ComparedRun {
  /** UTF-8. */
  readonly given: Uint8Array;
  /** Any of them is right. */
  readonly expected: readonly string[];
}

/** `json`: what a function returned. */
export type CompareRule = OutputRule | { readonly by: 'json'; readonly tolerance: number };

/** 1 for each run that is right, and 0 for the others. */
export function compareRuns(runs: readonly ComparedRun[], rule: CompareRule): number[] {
  return runs.map(({ given, expected }) => {
    const text = Buffer.from(given.buffer, given.byteOffset, given.byteLength).toString('utf8');
    return Number(expected.some((one) => isRight(text, one, rule)));
  });
}

const isRight = (given: string, expected: string, rule: CompareRule): boolean =>
  rule.by === 'json' ? isSameJson(given, expected, rule.tolerance) : isSameOutput(given, expected, rule);
