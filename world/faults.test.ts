// The fault test with a real vLLM among the backends. Its run is bounded, and its faults are chosen by a seed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { skipWithoutVllm } from './engines/vllm.ts';
import { runRealFaults } from './suite/real-faults.ts';

/** In float32 the same ids give the same logprobs up to the order of additions. */
const noiseLimit = 1e-3;

const title =
  'rollouts end once and without a wrong token while a real vLLM is paused, stopped, killed and restarted, and fakes hang, lie and die';

test(title, { skip: skipWithoutVllm(), timeout: 1_200_000 }, async (context) => {
  const startedAt = performance.now();
  const onProgress = (line: string) => context.diagnostic(`${((performance.now() - startedAt) / 1000).toFixed(1)} s: ${line}`);
  const report = await runRealFaults({ rollouts: 70, seed: 11, onProgress });
  context.diagnostic(JSON.stringify(report));
  const { wronglyEnded, doubled, wrong, done, largest, noise } = report;
  assert.deepEqual({ wronglyEnded, doubled, wrong }, { wronglyEnded: [], doubled: [], wrong: [] });
  assert.ok(done >= 65, `${done} of 70 rollouts are done despite the faults`);
  assert.ok(noise < noiseLimit && largest < noiseLimit, `recorded against scored ${largest}, scored twice ${noise}`);
  assert.ok(report.realTokens > 50 && report.realTokensAfterRestart > 0, 'the real engine sampled, and did so again after its restart');
  assert.ok(report.fakeTokens > 0 && report.retriedSegments > 0 && report.cutSegments > 0, 'the faults hit something');
});
