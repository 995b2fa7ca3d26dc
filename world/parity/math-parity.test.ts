// Our comparison of short answers and math-verify agree, and every difference is one that this file explains.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { findAnswer, isSameAnswer } from '@millrace/answers';
import { z } from 'zod';
import { askPython, openPython } from '../engines/python-packages.ts';
import { type MathCase, makeMathCases } from './math-cases.ts';
import { mathDifferences } from './math-differences.ts';

const packages = { name: 'math-verify', packages: ['math-verify==0.9.0', 'antlr4-python3-runtime==4.13.2'] };

test('math-verify agrees on all cases but the explained ones', { timeout: 900_000 }, async (context) => {
  const cases = makeMathCases();
  const python = await openPython(packages);
  const script = join(import.meta.dirname, 'math_verify_judge.py');
  const reply = await askPython(
    python,
    script,
    cases.map(({ given, truth }) => [given, truth]),
  );
  const theirs = z.array(z.boolean()).length(cases.length).parse(reply);
  const differing = cases
    .map((one, at) => ({ ...one, ours: isRight(one), theirs: theirs[at] }))
    .filter(({ ours, theirs }) => ours !== theirs);
  context.diagnostic(`${cases.length - differing.length} of ${cases.length} agree`);
  const unexplained = differing.filter((one) => !mathDifferences.some(({ ours, applies }) => ours === one.ours && applies(one)));
  assert.deepEqual(unexplained, []);
  for (const { why, applies } of mathDifferences) assert.ok(differing.some(applies), `no case shows any more: ${why}`);
  assert.ok(differing.length < 0.15 * cases.length);
});

/** The labelled pairs that no one tuned a grader on, as what an agent says and what is expected. */
function readHeldOut(): readonly (MathCase & { readonly isLabelledRight: boolean })[] {
  const folder = join(import.meta.dirname, '../../packages/answers/test');
  return ['held-out.txt', 'held-out-2.txt', 'held-out-3.txt'].flatMap((file) =>
    readFileSync(join(folder, file), 'utf8')
      .split('\n')
      .filter((line) => /^[=!]\??\s/.test(line))
      .map((line) => {
        const [said = '', truth = ''] = line.replace(/^[=!]\??\s/, '').split(' ;; ');
        const text = said.startsWith('> ') ? said.slice(2).replaceAll('\\n', '\n') : said.includes('\\boxed') ? said : `\\boxed{${said}}`;
        return { given: text, truth, isLabelledRight: line.startsWith('=') };
      }),
  );
}

test('of the pairs that no one tuned on, math-verify judges more wrongly', { timeout: 900_000 }, async (context) => {
  const pairs = readHeldOut();
  const python = await openPython(packages);
  const asked = pairs.map(({ given, truth }) => [given, truth]);
  const theirs = z.array(z.boolean()).parse(await askPython(python, join(import.meta.dirname, 'math_verify_judge.py'), asked));
  const wrong = (verdicts: readonly boolean[]) => pairs.filter(({ isLabelledRight }, at) => verdicts[at] !== isLabelledRight).length;
  const [ours, other] = [wrong(pairs.map(isRight)), wrong(theirs)];
  context.diagnostic(`of ${pairs.length}: ours is wrong on ${ours}, math-verify on ${other}`);
  assert.ok(ours < other);
});

function isRight({ given, truth }: MathCase): boolean {
  const found = findAnswer(given);
  return found !== undefined && isSameAnswer(found.text, truth);
}
