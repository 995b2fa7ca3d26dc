// An exported page answers its own requests: what it holds as a service would, and nothing else.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { type BriefPage, rolloutView } from '@millrace/protocol';
import { openExported } from '../../src/list/exported.ts';

test('lists are filtered and sorted, a rollout has its parts, and what was not exported is not there', async () => {
  const golden = join(import.meta.dirname, '../../../protocol/test/golden/rollout.json');
  const view = rolloutView.parse(JSON.parse(await readFile(golden, 'utf8')));
  const id = rolloutView.shape.id.parse('a:b.1');
  const rollouts = [
    { view, trajectory: null, task: null, events: [] },
    { view: { ...view, id, reward: null, result: null }, trajectory: null, task: { submission: { scenario: 'math' } }, events: [] },
  ];
  const answer = openExported({ title: 'results.jsonl', rollouts, pieces: { pieces: { 1: 'one' } } });
  const idsOf = (query: string) => (answer(`/dashboard/api/rollouts?${query}`) as BriefPage).rows.map((row) => row.id);
  assert.deepEqual(idsOf(''), [id, view.id]);
  assert.deepEqual(idsOf('sort=created&order=asc&limit=1'), [view.id]);
  assert.deepEqual(idsOf('rewarded=no&text=A:B'), [id]);
  assert.deepEqual(answer('/dashboard/api/session'), { right: 'read', live: false, title: 'results.jsonl' });
  assert.equal(answer(`/v1/rollouts/${encodeURIComponent(id)}`), rollouts[1]?.view);
  assert.deepEqual(answer(`/dashboard/api/rollouts/${encodeURIComponent(id)}/task`), { submission: { scenario: 'math' } });
  assert.deepEqual(answer(`/dashboard/api/rollouts/${encodeURIComponent(id)}/pieces`), { pieces: { 1: 'one' } });
  for (const path of ['/v1/rollouts/other', `/v1/rollouts/${view.id}/trajectory`, '/v1/status', `/v1/rollouts/${view.id}/constructor`])
    assert.equal(answer(path), undefined, path);
});
