// The output: plain lines without a terminal, a plot that redraws itself in a terminal, and a picture in two colour schemes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LiveCurve } from './curve.ts';
import { renderPicture } from './picture.ts';
import type { Step } from './trainer.ts';

const counts = { rollouts: 64, informative: 8, groups: 9, tokens: 600, seconds: 9 };
const steps: readonly Step[] = [
  { ...counts, step: 0, reward: 0.15, solved: 0.08, lowest: 0, highest: 0.5 },
  { ...counts, step: 1, reward: 0.93, solved: 0.9, lowest: 0.75, highest: 1 },
];

function draw(isTTY: boolean): string[] {
  const written: string[] = [];
  const curve = new LiveCurve({ isTTY, write: (text) => written.push(text) });
  for (const step of steps) curve.add(step);
  return written;
}

test('without a terminal each step is one plain line', () => {
  const [, first = '', second = '', ...more] = draw(false);
  assert.match(first, /^ {5}0 {2}0\.15 █{4}░{20} +0\.08 +8\/9 +64 +9\.0\n$/);
  assert.match(second, /^ {5}1 {2}0\.93 █{22}░{2} /);
  assert.equal(more.length, 0);
});

test('in a terminal the plot is redrawn and the lines stay', () => {
  const [, first = '', erase = '', second = ''] = draw(true);
  assert.equal(erase, `\u001b[${first.split('\n').length - 2}A\u001b[J`);
  assert.match(second, /1\.0 ┤.* ● /);
});

test('the picture names both axes, shows every step, and has colours for light and dark pages', () => {
  const svg = renderPicture(steps, { chance: 1 / 6, title: 'A title' });
  for (const text of ['training step', 'reward, share solved', 'mean reward', 'range of groups', 'guessing', 'prefers-color-scheme: dark'])
    assert.ok(svg.includes(text), text);
  assert.equal(svg.match(/<circle class="dot" cx="[0-9.]+" cy="[0-9.]+" r="3.5"\/>/g)?.length, steps.length);
  assert.ok(!svg.includes('NaN'));
});
