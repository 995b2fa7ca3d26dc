// The fault test of backends and weights, as CI runs it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runFaults } from '@millrace/testkit';

test('200 rollouts end without a wrong token while backends die, hang, send garbage, reply late and return, and weights change twice', async (context) => {
  const report = await runFaults({ rollouts: 200, onProgress: (line) => context.diagnostic(line) });
  context.diagnostic(JSON.stringify(report));
  const { wronglyEnded, wrong, done, segments, cutSegments, retriedSegments } = report;
  assert.deepEqual({ wronglyEnded, wrong }, { wronglyEnded: [], wrong: [] });
  assert.ok(done >= 195, `${done} of 200 reached their reward despite the faults`);
  for (const version of [0, 1, 2]) assert.ok((segments[version] ?? 0) > 0, `something was sampled at version ${version}`);
  assert.ok(cutSegments > 0, 'the second swap cut turns, and kept what they had');
  assert.ok(retriedSegments > 0, 'the faults hit something');
});
