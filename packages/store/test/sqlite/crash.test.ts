// Kills processes on one database file at random moments: everything that was acknowledged must survive.

import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { rolloutId, workerId } from '@millrace/protocol';
import { makeTrajectory } from '@millrace/testkit';
import type { Store } from '../../src/store.ts';
import { openSqliteBed } from './bed.ts';

const rounds = 4;

interface Acknowledged {
  readonly submitted: Set<string>;
  /** The attempt that finished each. */
  readonly finished: Map<string, number>;
}

test('killed processes lose nothing that was acknowledged, and nothing is finished twice', async () => {
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

/** Kills both processes after each has received at least one acknowledgement, and a random number of further ones. */
async function runAndKill(path: string, round: number, known: Acknowledged): Promise<void> {
  const children = ['submit', 'work'].map((task) => fork(new URL('./loop.ts', import.meta.url), [path, task, `${task[0]}${round}`]));
  const started = new Set<ChildProcess>();
  let more = Math.random() * 100;
  const enough = Promise.withResolvers<void>();
  for (const child of children) {
    child.on('exit', () => enough.resolve());
    child.on('message', (message: AcknowledgedWrite) => {
      note(message, known);
      started.add(child);
      if (started.size === children.length && more-- < 0) enough.resolve();
    });
  }
  await enough.promise;
  const closed = children.map((child) => once(child, 'close'));
  for (const child of children) child.kill('SIGKILL');
  await Promise.all(closed);
  assert.ok(
    children.every((child) => child.signalCode === 'SIGKILL' && started.has(child)),
    'a process exited before it was killed',
  );
}

interface AcknowledgedWrite {
  readonly submitted?: readonly string[];
  readonly finished?: string;
  readonly attempt?: number;
}

function note(write: AcknowledgedWrite, known: Acknowledged): void {
  for (const id of write.submitted ?? []) known.submitted.add(id);
  if (write.finished === undefined) return;
  assert.ok(!known.finished.has(write.finished), `${write.finished} was finished twice`);
  known.finished.set(write.finished, write.attempt ?? 0);
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
