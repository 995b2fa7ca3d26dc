// The crash test as CI runs it; `npm run chaos` runs longer ones.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runChaos } from '@millrace/testkit';

test('20 kills of server and workers while 200 rollouts run lose none, duplicate none, and leave no sandbox and no process', async (context) => {
  const { kills, done, attempts, sampledTokens, ...books } = await runChaos({
    kills: 20,
    rollouts: 200,
    onProgress: (line) => context.diagnostic(line),
  });
  assert.deepEqual(books, { lost: [], doubled: [], wrong: [], leftSandboxes: 0, leftProcesses: 0 });
  assert.equal(done, 200);
  assert.equal(kills.server + kills.worker, 20);
  assert.ok(attempts > 200, 'the kills hit something');
  assert.ok(sampledTokens > 0);
});
