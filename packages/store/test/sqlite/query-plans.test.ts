// What a worker asks the SQLite store all the time must not read the whole queue, which may hold 100,000 rollouts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workerId } from '@millrace/protocol';
import { makeReport, makeRollout } from '@millrace/testkit';
import { claim } from '../../src/rows/operations/claims.ts';
import { load } from '../../src/rows/operations/classes.ts';
import { renew } from '../../src/rows/operations/workers.ts';
import { openConnection } from '../../src/sqlite/engine/connection.ts';
import type { Transaction } from '../../src/transaction.ts';
import { openSqliteBed } from './bed.ts';

/** All queued rollouts, or all there are. An index of suspects or of delayed ones holds only those. */
const wholeQueue = /^SCAN rollouts$|rollouts_state \(state=\?\)/;

test('claiming, renewing and the load read no more of the queue than they take', async () => {
  await using bed = await openSqliteBed();
  const worker = workerId.parse('w');
  await bed.store.submit(
    ['a', 'b', 'c'].map((id) => makeRollout(id)),
    { maxQueued: 10 },
  );
  await bed.store.registerWorker({ id: worker, host: 'h', pid: 1 }, { leaseMs: 60_000 });
  const { db, statements, at } = openConnection(bed.path, { readOnly: false });
  const asked = new Set<string>();
  const transaction = record(at(Date.now()), asked);
  assert.equal((await claim(transaction, { worker, limit: 2, labels: {} })).length, 2);
  await renew(transaction, { worker, leaseMs: 60_000, report: makeReport(2) });
  await load(transaction, undefined);
  const plans = [...asked].map((sql) => {
    const plan = statements.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`);
    return { sql, steps: plan.map(({ detail }) => detail) };
  });
  db.close();
  assert.ok(plans.some(({ steps }) => steps.some((step) => step.includes('rollouts_due'))));
  assert.deepEqual(
    plans.filter(({ steps }) => steps.some((step) => wholeQueue.test(step))),
    [],
  );
});

function record(transaction: Transaction, asked: Set<string>): Transaction {
  return new Proxy(transaction, {
    get(target, name) {
      const value = Reflect.get(target, name);
      if (name !== 'one' && name !== 'all' && name !== 'run') return value;
      return (sql: string, ...values: unknown[]) => {
        asked.add(sql);
        return value(sql, ...values);
      };
    },
  });
}
