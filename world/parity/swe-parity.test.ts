// Our log parsers and our grading agree with the harness of SWE-bench, and every difference is one that is explained.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { findFault, judgeTests, logParserOf, toLogParserName } from '@millrace/scenarios';
import { z } from 'zod';
import { askPython, openPython } from '../engines/python-packages.ts';
import { makeGradeCases, makeLogCases, makeRunCases } from './swe-cases.ts';

const packages = { name: 'swebench', packages: ['unidiff==0.7.5'], alone: ['swebench==5.0.2'] };
const answers = z.object({
  logs: z.array(z.record(z.string(), z.string())),
  grades: z.array(z.object({ resolved: z.boolean(), lists: z.array(z.array(z.string())) })),
  runs: z.array(z.boolean()),
});
const statusNames = new Set(['PASSED', 'FAILED', 'SKIPPED', 'ERROR', 'XFAIL']);

interface LogDifference {
  readonly parser: string;
  readonly log: string;
  readonly ours: Readonly<Record<string, string>>;
  readonly theirs: Readonly<Record<string, string>>;
}

/** Each with the reason why ours is right, or does no harm. */
const explained: readonly { readonly why: string; readonly applies: (one: LogDifference) => boolean }[] = [
  {
    why: 'a word that only begins like a status is none; the harness records it, and then counts the test as neither passed nor failed',
    applies: ({ ours, theirs }) => {
      const odd = Object.entries(theirs).filter(([, status]) => !statusNames.has(status));
      const rest = (map: Readonly<Record<string, string>>) =>
        Object.fromEntries(Object.entries(map).filter(([name]) => !odd.some(([one]) => one === name)));
      return odd.length > 0 && isEqual(rest(ours), rest(theirs));
    },
  },
];

test('the log parsers and the grading of SWE-bench agree on all cases but the explained ones', { timeout: 900_000 }, async (context) => {
  const [logs, grades, runs] = [makeLogCases(), makeGradeCases(), makeRunCases()];
  const python = await openPython(packages);
  const theirs = answers.parse(await askPython(python, join(import.meta.dirname, 'swebench_judge.py'), { logs, grades, runs }));

  const differing = logs.flatMap(([parser, log], at): LogDifference[] => {
    const one = { parser, log, ours: Object.fromEntries(parse(parser, log)), theirs: theirs.logs[at] ?? {} };
    return isEqual(one.ours, one.theirs) ? [] : [one];
  });
  context.diagnostic(`logs: ${logs.length - differing.length} of ${logs.length} agree`);
  assert.deepEqual(
    differing.filter((one) => !explained.some(({ applies }) => applies(one))),
    [],
  );
  for (const { why, applies } of explained) assert.ok(differing.some(applies), `no case shows any more: ${why}`);

  const ours = grades.map(({ statuses, fail_to_pass: failToPass, pass_to_pass: passToPass, eval_type: evalType }) => {
    const verdict = judgeTests(new Map(Object.entries(statuses).flatMap(([name, status]) => toEntry(name, status))), {
      failToPass,
      passToPass,
      evalType,
    });
    const { failToPass: repaired, passToPass: kept } = verdict;
    return { resolved: verdict.resolved, lists: [repaired.passed, repaired.failed, kept.passed, kept.failed] };
  });
  const same = ours.filter((one, at) => isEqual(one, theirs.grades[at])).length;
  context.diagnostic(`grades: ${same} of ${grades.length} agree, ${ours.filter(({ resolved }) => resolved).length} resolved`);
  assert.deepEqual(ours, theirs.grades);

  const sound = runs.map(({ log, exit_code: exitCode }) => findFault(parse('pytest', log), { log, exitCode }) === undefined);
  context.diagnostic(`runs: ${sound.filter((one, at) => one === theirs.runs[at]).length} of ${runs.length} agree`);
  assert.deepEqual(sound, theirs.runs);
});

function parse(parser: string, log: string) {
  const name = toLogParserName(parser);
  assert.ok(name !== undefined, parser);
  return logParserOf(name)(log);
}

function toEntry(name: string, status: string): [string, 'PASSED' | 'FAILED' | 'SKIPPED' | 'ERROR' | 'XFAIL'][] {
  assert.ok(statusNames.has(status));
  return [[name, status as 'PASSED']];
}

const sorted = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.fromEntries(Object.entries(value).sort()) : value;
const isEqual = (one: unknown, other: unknown): boolean => JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
