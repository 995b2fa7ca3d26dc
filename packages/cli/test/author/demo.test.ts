// `millrace demo` as a user runs it, in an empty folder.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Segment, Trajectory } from '@millrace/protocol';
import { rolloutId } from '@millrace/protocol';
import { probeBubblewrap } from '@millrace/sandbox';
import { makeTempFolder } from '@millrace/testkit/plain';
import { findWrongTokens } from '../../src/author/demo/token-check.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;
const main = join(import.meta.dirname, '../../src/main.ts');

test('the demo runs 60 rollouts, loses none to a killed worker, and finds every token exact', { skip }, async () => {
  await using folder = await makeTempFolder('demo');
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, 'demo'], { cwd: folder.path, encoding: 'utf8', timeout: 120_000 });
  assert.equal(status, 0, stdout + stderr);
  assert.match(stdout, /demo-0 +math +● ● ● ● ○ ○ +0\.67/);
  assert.match(stdout, /demo-9 +shell +● ● ● ● ○ ○ +0\.67/);
  assert.match(stdout, /✔ Worker \d+ was killed with SIGKILL: \d+ rollouts began again on the other one, 0 were lost\./);
  assert.match(stdout, /✔ [\d,]{4,} sampled tokens compared with what the backend sent: 0 differ/);
  assert.match(stdout, /✔ 0 sandboxes left behind\./);
  assert.equal(stderr, '');
});

test('without bubblewrap the demo says the one line that installs it', async () => {
  await using folder = await makeTempFolder('demo');
  const env = { PATH: folder.path };
  const { status, stderr } = spawnSync(process.execPath, [main, 'demo'], { cwd: folder.path, env, encoding: 'utf8' });
  assert.equal(status, 1);
  assert.match(stderr, /bubblewrap cannot be run[\s\S]*→ sudo apt-get install -y bubblewrap\n$/);
});

test('a token that was changed, moved or given another logprob is found', () => {
  const id = rolloutId.parse('demo-0-0');
  const segment = (kind: Segment['kind'], ids: number[], logprobs: number[] = []): Segment =>
    ({ kind, tokenIds: Int32Array.from(ids), logprobs: Float32Array.from(logprobs), messages: [], text: '' }) as unknown as Segment;
  const toTrajectory = (...segments: Segment[]) => ({ rolloutId: id, attempt: 1, model: '', tools: [], segments }) as Trajectory;
  const backend = { sentTo: (_: string, at: number) => (at === 2 ? { tokenIds: [7, 8], logprobs: [-0.5, -1] } : undefined) };
  const prompt = segment('prompt', [1, 2]);
  assert.deepEqual(findWrongTokens(toTrajectory(prompt, segment('sampled', [7, 8], [-0.5, -1])), backend), []);
  assert.equal(findWrongTokens(toTrajectory(prompt, segment('sampled', [7, 9], [-0.5, -1])), backend).length, 1);
  assert.equal(findWrongTokens(toTrajectory(prompt, segment('sampled', [7, 8], [-0.5, -2])), backend).length, 1);
  assert.equal(findWrongTokens(toTrajectory(segment('prompt', [1]), segment('sampled', [7, 8], [-0.5, -1])), backend).length, 1);
});
