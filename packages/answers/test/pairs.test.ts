// Pairs of short answers that were labelled by hand: at most 2 % are judged wrong, and which ones is known.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { isSameAnswer } from '../src/compare-answers.ts';
import { findAnswer } from '../src/find-answer.ts';

interface Pair {
  readonly line: string;
  readonly given: string;
  readonly truth: string;
  readonly isRight: boolean;
  /** Listed in the file as judged wrong. */
  readonly isKnown: boolean;
}

/** `=` or `!`, a second `?` where the verdict is known to be wrong, then what is given and what is expected. */
function readPairs(file: string): readonly Pair[] {
  return readFileSync(new URL(file, import.meta.url), 'utf8')
    .split('\n')
    .filter((line) => /^[=!]\??\s/.test(line))
    .map((line) => {
      const [given = '', truth = ''] = line.replace(/^[=!]\??\s/, '').split(' ;; ');
      return { line, given, truth, isRight: line.startsWith('='), isKnown: line[1] === '?' };
    });
}

function isJudgedRight({ given, truth }: Pair): boolean {
  const isReply = given.startsWith('> ');
  const found = findAnswer(isReply ? given.slice(2).replaceAll('\\n', '\n') : given.includes('\\boxed') ? given : `\\boxed{${given}}`);
  return found !== undefined && isSameAnswer(found.text, truth);
}

for (const file of ['pairs.txt', 'held-out.txt', 'held-out-2.txt', 'held-out-3.txt'])
  test(`at most 2 % of the labelled ${file} are judged wrong, and only those that are listed`, () => {
    const pairs = readPairs(file);
    const wrong = pairs.filter((pair) => isJudgedRight(pair) !== pair.isRight);
    assert.deepEqual(
      wrong.map(({ line }) => line),
      pairs.filter(({ isKnown }) => isKnown).map(({ line }) => line),
    );
    assert.ok(wrong.length <= 0.02 * pairs.length, `${wrong.length} of ${pairs.length}`);
  });
