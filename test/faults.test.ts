// The fault test of the backends and their weights, as CI runs it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runFaults } from '@millrace/testkit';

test('backends die, hang, babble, are late and come back, and weights change twice, while 200 rollouts run: all end, none with a wrong token', async (context) => {
  const report = await runFaults({ rollouts: 200, onProgress: (line) => context.diagnostic(line) });
  context.diagnostic(JSON.stringify(report));
  const { wronglyEnded, wrong, done, segments, cutSegments, retriedSegments } = report;
  assert.deepEqual({ wronglyEnded, wrong }, { wronglyEnded: [], wrong: [] });
  assert.ok(done >= 195, `${done} of 200 reached their reward in spite of all`);
  for (const version of [0, 1, 2]) assert.ok((segments[version] ?? 0) > 0, `something was sampled at version ${version}`);
  assert.ok(cutSegments > 0, 'the second swap cut turns, and kept what they had');
  assert.ok(retriedSegments > 0, 'the faults hit something');
});
