// The dashboard without a service, on files and on a store, and as one page: the same routes, for this machine only.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { RolloutIndex } from '@millrace/dashboard';
import { openSqliteStore } from '@millrace/store';
import { makeRollout, makeTempFolder } from '@millrace/testkit';
import { exportPage, renderPage } from '../../../src/http/dashboard/view/export-page.ts';
import { openViewSource } from '../../../src/http/dashboard/view/open-source.ts';
import { viewPath } from '../../../src/http/dashboard/view/view.ts';

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

const usual = { port: 0, tokenizer: undefined, blobs: 'store' };

async function writeResults(folder: string): Promise<string> {
  const file = join(folder, 'results.jsonl');
  const lines = [rollout, { ...rollout, id: 'r-2', trajectory }].map((one) => JSON.stringify(one));
  await writeFile(file, `${lines[0]}\nnot a rollout\n\n${lines[1]}\n`);
  return file;
}

async function readJson(base: string, path: string) {
  const reply = await fetch(new URL(path, base));
  return { status: reply.status, body: JSON.parse(await reply.text()) };
}

test('every rollout of the file is listed and can be read, and other lines are counted', async () => {
  await using folder = await makeTempFolder('mr-view');
  await using viewer = await viewPath({ ...usual, path: await writeResults(folder.path) });
  assert.deepEqual([viewer.rollouts, viewer.skipped], [2, 1]);
  const read = (path: string) => readJson(viewer.url, path);
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
  await using viewer = await viewPath({ ...usual, path: await writeResults(folder.path) });
  const headers = { origin: 'https://example.org' };
  assert.equal((await fetch(new URL('/dashboard/api/rollouts', viewer.url), { headers })).status, 403);
});

test('a folder shows the results of all its files, and a folder without any says so', async () => {
  await using folder = await makeTempFolder('mr-view');
  await assert.rejects(viewPath({ ...usual, path: folder.path }), /no \.jsonl file and no store/);
  await mkdir(join(folder.path, 'step-2'));
  await writeResults(folder.path);
  await writeFile(join(folder.path, 'step-2/results.jsonl'), JSON.stringify({ ...rollout, id: 'r-3' }));
  await using viewer = await viewPath({ ...usual, path: folder.path });
  assert.equal(viewer.rollouts, 3);
  assert.equal((await readJson(viewer.url, '/v1/rollouts/r-3')).body.id, 'r-3');
  assert.deepEqual((await readJson(viewer.url, '/v1/rollouts/r-2/trajectory')).body.segments[0].token_ids, [1, 2]);
});

test('a store is shown while a service has it open, with its tasks and events, and is not changed', async () => {
  await using folder = await makeTempFolder('mr-view');
  await using store = await openSqliteStore({ path: join(folder.path, 'millrace.db'), clock: systemClock, log: silentLog });
  await store.submit([makeRollout('queued-1')], { maxQueued: 10 });
  const before = await store.lastEventId();
  await using viewer = await viewPath({ ...usual, path: folder.path });
  assert.equal((await readJson(viewer.url, '/v1/rollouts/queued-1')).body.state, 'queued');
  assert.deepEqual((await readJson(viewer.url, '/dashboard/api/rollouts/queued-1/task')).body.submission.task, {
    question: 'what is queued-1?',
  });
  assert.equal((await readJson(viewer.url, '/dashboard/api/rollouts/queued-1/events')).body.events[0].kind, 'rollout-queue');
  assert.equal((await readJson(viewer.url, '/v1/rollouts/queued-1/trajectory')).status, 404);
  assert.equal(await store.lastEventId(), before);
});

test('an exported page allows its own scripts only, by their digests, and no text can leave its data', async () => {
  await using folder = await makeTempFolder('mr-view');
  await using source = await openViewSource({ ...usual, path: await writeResults(folder.path) });
  await source.fill(new RolloutIndex(() => 0));
  const hostile = '</script><script>alert(1)</script><!-- <img src=x onerror=alert(1)>';
  const page = renderPage(
    { script: 'const text = "</script>";', style: 'b{}', icon: '<svg/>' },
    { title: hostile, rollouts: [], pieces: { pieces: { 1: hostile } } },
  );
  const [, policy = ''] = /Content-Security-Policy" content="([^"]+)"/.exec(page) ?? [];
  const [, code = ''] = /<script type="module">([\s\S]*?)<\/script>/.exec(page) ?? [];
  assert.equal(code, 'const text = "<\\/script>";');
  assert.ok(policy.includes(`script-src 'sha256-${createHash('sha256').update(code).digest('base64')}';`));
  assert.doesNotMatch(policy, /unsafe|\*|https?:|'self'/);
  const [, data = ''] = /<script type="application\/json" id="millrace-data">([\s\S]*?)<\/script>/.exec(page) ?? [];
  assert.equal(JSON.parse(data).title, hostile);
  assert.equal(page.match(/<script/g)?.length, 2);
  assert.match(await exportPage(source, ['r-1', 'r-2']), /"rollout_id":"r-2"/);
});
