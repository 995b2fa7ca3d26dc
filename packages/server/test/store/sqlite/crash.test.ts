// Processes on one database file are killed at random moments; whatever any of them was answered must be there.

import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { rolloutId, workerId } from '@millrace/protocol';
import { makeTrajectory } from '@millrace/testkit';
import type { Store } from '../../../src/store/store.ts';
import { openSqliteBed } from './bed.ts';

const rounds = 4;

interface Acknowledged {
  readonly submitted: Set<string>;
  /** The attempt under which each was finished. */
  readonly finished: Map<string, number>;
}

test('killed processes lose nothing that was answered, and nothing is finished twice', async () => {
  await using bed = await openSqliteBed();
  const known: Acknowledged = { submitted: new Set(), finished: new Map() };
  for (let round = 0; round < rounds; round++) {
    await runAndKill(bed.path, round, known);
    await bed.store.dropWorker(workerId.parse(`w${round}`), { maxLosses: 1_000 });
  }
  await checkAll(bed.store, known);
  const db = new DatabaseSync(bed.path);
  assert.deepEqual({ ...db.prepare('PRAGMA integrity_check').get() }, { integrity_check: 'ok' });
  db.close();
});

/** Lets both processes be answered once, and then some more, before they are killed. */
async function runAndKill(path: string, round: number, known: Acknowledged): Promise<void> {
  const children = ['submit', 'work'].map((task) => fork(new URL('./loop.ts', import.meta.url), [path, task, `${task[0]}${round}`]));
  const spoken = new Set<ChildProcess>();
  let more = Math.random() * 100;
  const enough = Promise.withResolvers<void>();
  for (const child of children) {
    child.on('exit', () => enough.resolve());
    child.on('message', (message: Told) => {
      note(message, known);
      spoken.add(child);
      if (spoken.size === children.length && more-- < 0) enough.resolve();
    });
  }
  await enough.promise;
  const closed = children.map((child) => once(child, 'close'));
  for (const child of children) child.kill('SIGKILL');
  await Promise.all(closed);
  assert.ok(
    children.every((child) => child.signalCode === 'SIGKILL' && spoken.has(child)),
    'a process ended by itself',
  );
}

interface Told {
  readonly submitted?: readonly string[];
  readonly finished?: string;
  readonly attempt?: number;
}

function note(told: Told, known: Acknowledged): void {
  for (const id of told.submitted ?? []) known.submitted.add(id);
  if (told.finished === undefined) return;
  assert.ok(!known.finished.has(told.finished), `${told.finished} was finished twice`);
  known.finished.set(told.finished, told.attempt ?? 0);
}

async function checkAll(store: Store, known: Acknowledged): Promise<void> {
  const { rollouts } = await store.list({ limit: 100_000 });
  const byId = new Map(rollouts.map((record) => [String(record.id), record]));
  for (const id of known.submitted) assert.ok(byId.has(id), `${id} was submitted and is gone`);
  for (const [id, attempt] of known.finished) {
    assert.deepEqual([byId.get(id)?.state, byId.get(id)?.result?.reward], ['done', attempt]);
    assert.deepEqual(await store.trajectory(rolloutId.parse(id)), makeTrajectory(id, attempt));
  }
  assert.ok(rollouts.every(({ state }) => state === 'done' || state === 'queued'));
  const { events } = await store.events(0, { limit: 1_000_000, kinds: ['rollout-end'] });
  const ended = rollouts.filter(({ state }) => state === 'done').map(({ id }) => id);
  assert.deepEqual(events.map((event) => event.rollout_id).sort(), ended.sort());
}
