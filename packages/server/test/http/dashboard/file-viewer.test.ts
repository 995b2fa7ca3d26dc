// The dashboard on a file: the same routes, for this machine only.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeTempFolder } from '@millrace/testkit';
import { viewFile } from '../../../src/http/dashboard/view-file.ts';

const rollout = {
  id: 'r-1',
  scenario: 'mäth',
  group: null,
  state: 'done',
  attempt: 1,
  retries: 0,
  losses: 0,
  worker: null,
  reward: null,
  result: null,
  failure: null,
  failures: [],
  created_at: '2026-01-01T00:00:00.000Z',
  ended_at: '2026-01-01T00:00:01.000Z',
  metadata: null,
};

const trajectory = {
  rollout_id: 'r-2',
  attempt: 1,
  model: 'm',
  tools: [],
  segments: [{ kind: 'prompt', turn: 0, text: 'hi', messages: [], token_ids: [1, 2], logprobs: [], mask: 0 }],
  sha256: '',
};

test('every rollout of the file is listed and can be read, and other lines are counted', async () => {
  await using folder = await makeTempFolder('mr-view');
  const file = join(folder.path, 'results.jsonl');
  const lines = [rollout, { ...rollout, id: 'r-2', trajectory }].map((one) => JSON.stringify(one));
  await writeFile(file, `${lines[0]}\nnot a rollout\n\n${lines[1]}\n`);
  await using viewer = await viewFile({ file, port: 0, tokenizer: undefined });
  assert.deepEqual([viewer.rollouts, viewer.skipped], [2, 1]);
  const read = async (path: string) => {
    const reply = await fetch(new URL(path, viewer.url));
    return { status: reply.status, body: JSON.parse(await reply.text()) };
  };
  assert.equal((await read('/dashboard/api/session')).body.live, false);
  assert.deepEqual(
    (await read('/dashboard/api/rollouts')).body.rows.map(({ id }: { id: string }) => id),
    ['r-2', 'r-1'],
  );
  assert.equal((await read('/v1/rollouts/r-2')).body.id, 'r-2');
  assert.deepEqual((await read('/v1/rollouts/r-2/trajectory')).body.segments[0].token_ids, [1, 2]);
  assert.match((await read('/v1/rollouts/r-1/trajectory')).body.error.message, /submit --trajectories/);
  assert.equal((await read('/v1/rollouts/r-3')).status, 404);
});

test('a page of another site cannot read the file', async () => {
  await using folder = await makeTempFolder('mr-view');
  const file = join(folder.path, 'results.jsonl');
  await writeFile(file, `${JSON.stringify(rollout)}\n`);
  await using viewer = await viewFile({ file, port: 0, tokenizer: undefined });
  const headers = { origin: 'https://example.org' };
  assert.equal((await fetch(new URL('/dashboard/api/rollouts', viewer.url), { headers })).status, 403);
});
