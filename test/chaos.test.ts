// The chaos run as CI runs it, with a few faults of every kind; `npm run chaos -- --faults 1000` runs longer ones.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runChaos } from '@millrace/testkit';

const faults = 30;

test(`${faults} faults of processes, store, clock and everything around lose nothing, double nothing, leak nothing and leave nothing stuck`, {
  timeout: 600_000,
}, async (context) => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  context.diagnostic(`seed ${seed}`);
  const report = await runChaos({ faults, seed, onProgress: (line) => context.diagnostic(line) });
  const { lost, doubled, leaked, stuck, wrong } = report;
  assert.deepEqual({ lost, doubled, leaked, stuck, wrong }, { lost: [], doubled: [], leaked: [], stuck: [], wrong: [] });
  const counts = Object.values(report.faults);
  assert.equal(
    counts.reduce((sum, one) => sum + one.faults, 0),
    faults,
  );
  if (process.env.CI) assert.deepEqual(report.skipped, {}, 'every kind of fault can be caused here');
  assert.ok(report.attempts > report.rollouts, 'the faults hit something');
  assert.ok(report.done > 0 && report.sampledTokens > 0 && report.groups > 0);
});
