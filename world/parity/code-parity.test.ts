// Our comparison of outputs and results agrees with the checkers of LiveCodeBench and APPS, and every difference is one that is explained.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { isSameJson, isSameOutput } from '@millrace/scenarios';
import { z } from 'zod';
import { askPython, openPython } from '../engines/python-packages.ts';
import { makeCallCases, makeOutputCases } from './output-cases.ts';
import { appsDifferences, callDifferences, type Differing, livecodebenchDifferences, type OutputDifference } from './output-differences.ts';

const packages = { name: 'output-checkers', packages: ['numpy==2.4.6', 'tqdm==4.67.1'], alone: ['verl==0.9.1', 'lighteval==0.13.0'] };
const verdicts = z.object({ livecodebench: z.array(z.boolean()), calls: z.array(z.boolean()), apps: z.array(z.boolean()) });

test('LiveCodeBench and APPS agree on all cases but the explained ones', { timeout: 900_000 }, async (context) => {
  const [stdio, calls] = [makeOutputCases(), makeCallCases()];
  const python = await openPython(packages);
  const theirs = verdicts.parse(await askPython(python, join(import.meta.dirname, 'output_judge.py'), { stdio, calls }));
  const byOutput = (tolerance: number) => (given: string, expected: string) => isSameOutput(given, expected, { by: 'lines', tolerance });
  const compared = [
    { name: 'LiveCodeBench', cases: stdio, theirs: theirs.livecodebench, ours: byOutput(0), explained: livecodebenchDifferences },
    { name: 'APPS', cases: stdio, theirs: theirs.apps, ours: byOutput(1e-5), explained: appsDifferences },
    {
      name: 'results of functions',
      cases: calls,
      theirs: theirs.calls,
      ours: (a: string, b: string) => isSameJson(a, b, 0),
      explained: callDifferences,
    },
  ];
  for (const { name, cases, theirs, ours, explained } of compared) {
    const all = cases.map(
      ([given, expected], at): Differing => ({ given, expected, ours: ours(given, expected), theirs: theirs[at] ?? false }),
    );
    const differing = all.filter((one) => one.ours !== one.theirs);
    context.diagnostic(`${name}: ${all.length - differing.length} of ${all.length} agree`);
    check(name, differing, explained);
  }
});

function check(name: string, differing: readonly Differing[], explained: readonly OutputDifference[]): void {
  assert.deepEqual(
    differing.filter((one) => !explained.some(({ applies }) => applies(one))),
    [],
    name,
  );
  for (const { why, applies } of explained) assert.ok(differing.some(applies), `${name}: no case shows any more: ${why}`);
}
