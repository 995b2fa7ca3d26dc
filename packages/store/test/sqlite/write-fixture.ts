// Writes the SQL of a small store with a bit of everything in it: `node packages/store/test/sqlite/write-fixture.ts`. Run it
// before the schema changes, so that the next version is tested on a store of the version before.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { silentLog } from '@millrace/base/log';
import { backendId, batchId, groupId, rolloutId, workerId } from '@millrace/protocol';
import {
  FakeClock,
  makeBatch,
  makeFailure,
  makeGroup,
  makeReport,
  makeResult,
  makeRollout,
  makeTempFolder,
  makeTrajectory,
  moveUpTo,
} from '@millrace/testkit';
import { openSqliteStore } from '../../src/sqlite/sqlite.ts';
import type { ClaimedRollout, Store } from '../../src/store.ts';
import { dumpDatabase } from './dump.ts';

const worker = workerId.parse('w-old');
const lastStage = 'evaluate';

await using folder = await makeTempFolder('millrace-fixture');
const path = join(folder.path, 'store.db');
{
  await using store = await openSqliteStore({ path, clock: new FakeClock(), log: silentLog });
  await fillBatches(store);
  await fillPlain(store);
}
const db = new DatabaseSync(path);
const { user_version: version } = { ...db.prepare('PRAGMA user_version').get() };
const sql = dumpDatabase(db);
db.close();
const fixtures = join(import.meta.dirname, 'fixtures');
await mkdir(fixtures, { recursive: true });
await writeFile(join(fixtures, `schema-${version}.sql`), sql);

/** One batch that is done and acknowledged, and one with a group in every state, of which two siblings run. */
async function fillBatches(store: Store): Promise<void> {
  await store.registerWorker({ id: worker, host: 'host', pid: 1 }, { leaseMs: 10_000 });
  await store.joinBackend({ id: backendId.parse('x'), url: 'http://x', dialect: 'vllm', policyVersion: 3, state: 'up' });
  await store.createBatch(makeBatch('met', { series: 's', target: 1, webhook: { url: 'http://h/', secret: 'secret' } }));
  for (const begun of [0, 1]) await store.beginGroup(makeGroup('met', begun));
  for (const claim of await store.claim(worker, 3)) await finish(store, claim);
  await deliver(store, 'met:0');
  await store.ack(batchId.parse('met'), 'trainer', 1);
  await store.createBatch(makeBatch('open', { series: 'other', target: 3, count: 8 }));
  for (const begun of [0, 1, 2, 3]) await store.beginGroup(makeGroup('open', begun));
  for (const claim of await store.claim(worker, 7)) {
    if (claim.id === 'open:2:1')
      await store.finish(claim, { state: 'failed', failure: makeFailure('init-failed', 1), result: makeResult(null) });
    else if (claim.id.startsWith('open:3')) await moveUpTo(store, claim, 'run');
    else await finish(store, claim);
  }
  await deliver(store, 'open:0');
  await store.settleGroup({ group: groupId.parse('open:1'), batch: batchId.parse('open'), state: 'uniform', members: [] });
  await store.settleGroup({ group: groupId.parse('open:2'), batch: batchId.parse('open'), state: 'failed', members: [] });
}

async function deliver(store: Store, id: string): Promise<void> {
  const members = [`${id}:0`, `${id}:1`].map((member) => rolloutId.parse(member));
  await store.settleGroup({ group: groupId.parse(id), batch: batchId.parse(id.split(':')[0]), state: 'delivered', members });
}

async function finish(store: Store, claim: ClaimedRollout): Promise<void> {
  await moveUpTo(store, claim, lastStage);
  const result = makeResult(Number(claim.id.endsWith('0')));
  await store.finish(claim, { state: 'done', result, trajectory: makeTrajectory(claim.id, claim.attempt) });
}

/** Rollouts that are done, cancelled, running, delayed after a retry, and queued. */
async function fillPlain(store: Store): Promise<void> {
  const ids = ['done', 'retried', 'running', 'cancelled', 'queued'];
  await store.submit(
    ids.map((id) => makeRollout(id)),
    { maxQueued: 100 },
  );
  await store.cancel(rolloutId.parse('cancelled'), { tombstoneMs: 0 });
  await store.cancel(rolloutId.parse('never-submitted'), { tombstoneMs: 1000 });
  const claims = await store.claim(worker, 4);
  const [done, retried] = ['done', 'retried'].map((id) => claims.find((claim) => claim.id === id));
  if (!done || !retried) throw new Error('nothing was claimed');
  await finish(store, done);
  await store.retry(retried, makeFailure('backend-failed', 1), { delayMs: 60_000 });
  await store.renew(worker, { leaseMs: 10_000, report: makeReport(1) });
}
