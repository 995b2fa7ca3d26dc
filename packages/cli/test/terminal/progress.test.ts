// The progress line at every width, its estimate, and how it is drawn with hints.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openTally } from '../../src/rollouts/tally.ts';
import { openProgress, renderPlainProgress, renderProgress, renderSummary, type SubmitProgress } from '../../src/terminal/progress.ts';
import { openPaint, toPlain, width } from '../../src/terminal/text.ts';
import { openIo } from '../fake-io.ts';

const half: SubmitProgress = { total: 10_000, accepted: 10_000, done: 4990, failed: 10, cancelled: 0, elapsedMs: 60_000, perSecond: 50 };
const plain = openPaint(false);

test('the line fits every width and never wraps', () => {
  for (let columns = 12; columns < 200; columns++) {
    assert.ok(width(renderProgress(half, { columns, paint: plain })) < columns, `at ${columns} columns`);
  }
});

test('the line has counts, share, rate, time left and failures', () => {
  assert.equal(
    renderProgress(half, { columns: 80, paint: plain }),
    '▕█████████████·············▏  5,000/10,000   50%  50.0/s  ETA 1m 40s  10 failed',
  );
  assert.equal(renderPlainProgress(half), ' 5,000/10,000   50%  50.0/s  ETA 1m 40s  10 failed  after 1m 00s');
});

test('the line says how calls get on, so that a slow engine does not look like nothing', () => {
  const slow = { ...half, total: 5, accepted: 5, done: 0, failed: 0, perSecond: undefined };
  const calls = ['0.3 tokens/s', 'oldest call 2m 10s', 'last token 4.0 s ago'];
  assert.equal(
    renderPlainProgress({ ...slow, calls }),
    '0/5    0%  -/s  ETA -  0.3 tokens/s  oldest call 2m 10s  last token 4.0 s ago  after 1m 00s',
  );
  for (let columns = 12; columns < 200; columns++)
    assert.ok(width(renderProgress({ ...slow, calls }, { columns, paint: plain })) < columns, `at ${columns} columns`);
});

test('without a rate there is no estimate', () => {
  const start = { ...half, done: 0, failed: 0, accepted: 1000, perSecond: undefined };
  assert.match(renderPlainProgress(start), /0\/10,000 {4}0% {2}-\/s {2}ETA - {2}1,000 accepted/);
  assert.match(renderSummary({ ...start, elapsedMs: 0 }, { sum: 0, count: 0 }), /^0 rollouts in 0 ms \(0\/s\)/);
});

test('the rate is that of the last seconds, not of the whole run', () => {
  let now = 0;
  const tally = openTally(
    100,
    () => 100,
    () => now,
  );
  const view = { state: 'done', reward: null, failure: null } as unknown as Parameters<typeof tally.add>[0];
  for (let n = 0; n < 30; n++) tally.add(view);
  now = 100_000;
  assert.equal(tally.read().perSecond, undefined);
  for (let n = 0; n < 15; n++) tally.add(view);
  assert.equal(tally.read().perSecond, 1);
  assert.equal(tally.left(), 55);
});

test('on a terminal the bar is redrawn in place and removed at the end', () => {
  const io = openIo({ terminal: true });
  const progress = openProgress(io, () => half);
  progress.say('a word');
  progress.close();
  assert.ok(
    io
      .err()
      .split('\r')
      .every((part) => !part.slice(0, -1).includes('\n') || part.includes('a word')),
  );
  assert.ok(io.err().endsWith('\r\x1b[K'));
  progress.say('late news');
  assert.ok(io.err().endsWith('late news\n'), 'nothing is drawn after the end');
});

test('hints stand above the bar, and both are removed at the end', () => {
  const io = openIo({ terminal: true });
  const progress = openProgress(
    io,
    () => half,
    () => ['No backend has joined.', 'x'.repeat(200)],
  );
  progress.close();
  const [first = '', second = '', third = ''] = toPlain(io.err()).split('\n');
  assert.equal(first.trim(), '! No backend has joined.');
  assert.ok(width(second) < 80);
  assert.match(third, /5,000\/10,000/);
  assert.ok(io.err().endsWith('\r\x1b[K\x1b[1A\r\x1b[K\x1b[1A\r\x1b[K'));
});
