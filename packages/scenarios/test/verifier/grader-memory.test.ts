// Texts of a megabyte that make a grader allocate: its thread may end, the process never does.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findProgram } from '../../src/code/find-program.ts';
import { compareRuns } from '../../src/code/output/compare-runs.ts';
import { judgeMath } from '../../src/math/judge-math.ts';
import { judgeStem } from '../../src/stem/judge-stem.ts';
import { stemTask } from '../../src/stem/stem-task.ts';
import { endMarker, readSuite, type SuiteTask, startMarker } from '../../src/swe/grade/read-suite.ts';
import { gradeInThread } from '../../src/verifier/graders.ts';

const megabyte = 1 << 20;
const fill = (part: string) => part.repeat(Math.floor(megabyte / part.length));
const bytes = (text: string) => new TextEncoder().encode(text);
const quantity = stemTask.parse({ kind: 'numeric', question: 'q', answer: '9.81 m/s^2' });

const formulas: Readonly<Record<string, string>> = {
  'a tower of powers': '10^{10^{10^{10}}}',
  'a factorial': `${'9'.repeat(1000)}!`,
  'a number with a million digits': fill('9'),
  'a power of a long number': `${'9'.repeat(100_000)}^{99999}`,
  'a long sum': '\\sum_{i=1}^{10^{12}} i^{i}',
  'a long product': '\\prod_{i=1}^{999999999} i',
  'a binomial': '\\binom{999999999}{499999999}',
  'a large set': `\\{${fill('1,')}1\\}`,
  'many intervals': fill('[0,1]\\cup'),
  'many variables': fill('(a+b)'),
  'a large exponent': '(x+y+z)^{99999}',
  'a large matrix': `\\begin{pmatrix}${fill('1&')}1\\end{pmatrix}`,
  'a decimal with a large exponent': '1e999999999',
};

for (const [what, formula] of Object.entries(formulas))
  test(`math and stem: ${what} does not end the process`, async () => {
    const judged = await gradeInThread(judgeMath, [{ answer: '7' }, `\\boxed{${formula}}`] as const, {});
    assert.notEqual(judged?.correctness, 1);
    const measured = await gradeInThread(judgeStem, [quantity, `\\boxed{${formula} m/s^2}`] as const, {});
    assert.notEqual(measured?.isRight, true);
  });

const outputs: Readonly<Record<string, string>> = {
  'empty lists': `[${fill('[],')}[]]`,
  'empty objects': `[${fill('{},')}{}]`,
  'nested lists': `${'['.repeat(megabyte / 2)}${']'.repeat(megabyte / 2)}`,
  'different names': `{${Array.from({ length: 80_000 }, (_, at) => `"k${at}":1`).join(',')}}`,
  'a long integer': fill('9'),
  'empty lines': fill('\n'),
  words: fill('a '),
  fences: fill('```\n'),
};

for (const [what, text] of Object.entries(outputs))
  test(`code: an output of ${what} does not end the process`, async () => {
    for (const by of ['lines', 'words', 'json'] as const) {
      const run = { given: bytes(`${text} `), expected: [`${text}1`] };
      const scores = await gradeInThread(compareRuns, [[run], { by, tolerance: 0 }] as const, { cpuMs: 2000 });
      assert.notEqual(scores?.[0], 1);
    }
    await gradeInThread(findProgram, [text, 'python'] as const, {});
  });

for (const [what, text] of Object.entries({ objects: '{},', lists: '[],', 'numbers with many digits': '12345678901234567890,' }))
  test(`code: twelve megabytes of ${what} where a long text is expected are wrong, and do not end the process`, async () => {
    const given = bytes(`[${text.repeat((12 << 20) / text.length)}1]`);
    const run = { given, expected: [JSON.stringify(['x'.repeat(6 << 20)])] };
    assert.deepEqual(await gradeInThread(compareRuns, [[run], { by: 'json', tolerance: 0 }] as const, {}), [0]);
  });

test('swe: a log with more tests than any suite has exhausts its reader, and does not end the process', async () => {
  const log = Array.from({ length: 1_100_000 }, (_, at) => `PASSED a::${at}`).join('\n');
  const output = bytes(`${startMarker} 1\n${log}\n${endMarker} 1\n`);
  const run = { output, number: '1', records: bytes(''), key: 'k', exitCode: 0, timedOut: false };
  const task: SuiteTask = { log_parser: 'pytest', FAIL_TO_PASS: ['a::1'], PASS_TO_PASS: [], eval_type: 'pass_and_fail' };
  assert.equal(await gradeInThread(readSuite, [task, run] as const, { cpuMs: 60_000 }), undefined);
});
