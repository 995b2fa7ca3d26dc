// Pairs of answers to questions of science that were labelled by hand: at most 2 % are judged wrong, and which ones is known.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { findChoice } from '../../src/stem/choice.ts';
import { isSameQuantity } from '../../src/stem/quantity.ts';
import { isSameText } from '../../src/stem/short-text.ts';

const options = ['oxygen', 'nitrogen', 'argon', '5 m'];
const rule = { relative: 0.01, absolute: 0, isUnitRequired: false };

function isJudgedRight(kind: string, given: string, truth: string): boolean {
  if (kind === 'choice') return findChoice(given.replaceAll('\\n', '\n'), options) === truth;
  return kind === 'text' ? isSameText(given, truth) : isSameQuantity(given, truth, rule);
}

for (const file of ['pairs.txt', 'held-out.txt', 'held-out-2.txt'])
  test(`at most 2 % of the labelled ${file} are judged wrong, and only those that are listed`, () => {
    const lines = readFileSync(new URL(file, import.meta.url), 'utf8')
      .split('\n')
      .filter((line) => /^[=!]\??\s/.test(line));
    const wrong = lines.filter((line) => {
      const [kind = '', given = '', truth = ''] = line.replace(/^[=!]\??\s/, '').split(' ;; ');
      return isJudgedRight(kind, given, truth) !== line.startsWith('=');
    });
    assert.deepEqual(
      wrong,
      lines.filter((line) => line[1] === '?'),
    );
    assert.ok(wrong.length <= 0.02 * lines.length, `${wrong.length} of ${lines.length}`);
  });
