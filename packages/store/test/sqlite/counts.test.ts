// The counts of rollouts and classes are those of the rows, whatever happened: some are kept by triggers, and some by the moves.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { rolloutId, type WorkerId, workerId } from '@millrace/protocol';
import { FakeClock, makeFailure, makeRandom, makeResult, makeRollout, makeTrajectory } from '@millrace/testkit';
import type { Claim } from '../../src/claim.ts';
import { writes } from '../../src/rows/operations.ts';
import { openConnection } from '../../src/sqlite/engine/connection.ts';
import type { Store } from '../../src/store.ts';
import { openSqliteBed } from './bed.ts';

/** The counts that are kept, and those of the rows. */
function readCounts(path: string): { kept: unknown[]; rows: unknown[] } {
  const db = new DatabaseSync(path, { readOnly: true });
  const all = (sql: string) => db.prepare(sql).all();
  const kept = [
    all('SELECT state, n FROM state_counts WHERE n <> 0 ORDER BY state'),
    all('SELECT seq AS class, queued, due, active FROM classes WHERE queued <> 0 OR due <> 0 OR active <> 0 ORDER BY seq'),
  ];
  const rows = [
    all('SELECT state, count(*) AS n FROM rollouts GROUP BY state ORDER BY state'),
    all(`SELECT class, sum(state = 'queued') AS queued, sum(state = 'queued' AND line = 'due') AS due,
      sum(state IN ('init', 'ready', 'run')) AS active FROM rollouts WHERE state IN ('queued', 'init', 'ready', 'run') GROUP BY class ORDER BY class`),
  ];
  db.close();
  return { kept, rows };
}

function checkCounts(path: string, after: string): void {
  const { kept, rows } = readCounts(path);
  assert.deepEqual(kept, rows, after);
}

async function registerWorker(store: Store, name: string): Promise<WorkerId> {
  const id = workerId.parse(name);
  await store.registerWorker({ id, host: 'h', pid: 1 }, { leaseMs: 3_600_000 });
  return id;
}

const stages = ['ready', 'run', 'evaluate'] as const;

/** Does one thing at random, as workers and clients do. */
class RandomCaller {
  readonly #store: Store;
  readonly #clock: FakeClock;
  readonly #random: () => number;
  readonly #claims: { readonly claim: Claim; step: number }[] = [];
  #submitted = 0;
  #registered = 0;
  readonly #workers: WorkerId[] = [];

  constructor(options: { store: Store; clock: FakeClock; seed: number }) {
    this.#store = options.store;
    this.#clock = options.clock;
    this.#random = makeRandom(options.seed);
  }

  #pick<T>(some: readonly T[]): T | undefined {
    return some[Math.floor(this.#random() * some.length)];
  }

  async act(): Promise<string> {
    const [store, held] = [this.#store, this.#pick(this.#claims.slice(-8))];
    const { claim } = held ?? {};
    const actions: Record<string, () => Promise<unknown>> = {
      submit: async () => {
        const changes = { priority: this.#pick([0, 1]), requires: this.#pick([{}, { gpu: 'a' }]) };
        const more = Array.from({ length: 3 }, () => makeRollout(`r${this.#submitted++}`, changes));
        await store.submit(more, { maxQueued: 1000 });
      },
      claim: async () => {
        if (this.#workers.length < 3) this.#workers.push(await registerWorker(store, `w${this.#registered++}`));
        const worker = this.#pick(this.#workers) ?? workerId.parse('none');
        const claims = await store.claim(worker, 2, this.#pick([{}, { gpu: 'a' }]));
        this.#claims.push(...claims.map((claim) => ({ claim, step: 0 })));
      },
      move: async () => held && store.move(held.claim, stages[held.step++ % 4] ?? 'ready'), // after the last stage comes a move that is refused
      finish: async () => claim && store.finish(claim, { state: 'done', result: makeResult(1), trajectory: makeTrajectory(claim.id, 1) }),
      fail: async () => claim && store.finish(claim, { state: 'failed', failure: makeFailure('internal', 1) }),
      retry: async () => claim && store.retry(claim, makeFailure('init-failed', 1), { delayMs: this.#pick([0, 500]) ?? 0 }),
      release: async () => claim && store.release(claim, { requires: this.#pick([{}, { gpu: 'a' }]) ?? {} }),
      cancel: async () => store.cancel(rolloutId.parse(`r${Math.floor(this.#random() * (this.#submitted + 1))}`), { tombstoneMs: 10 }),
      lose: async () => store.dropWorker(this.#workers.shift() ?? workerId.parse('none'), { maxLosses: 3 }),
      wait: async () => this.#clock.advance(300),
      retain: async () => store.retain({ endedMs: 2_000, eventsMs: 2_000 }),
    };
    const name = this.#pick(['claim', 'move', 'move', 'move', 'move', ...Object.keys(actions)]) ?? 'wait';
    await actions[name]?.().catch((error) => assert.match(error.message, /cannot move from/));
    return name;
  }
}

for (const seed of [1, 2, 3]) {
  test(`counts are those of the rows after 200 random rounds of calls (seed ${seed})`, async () => {
    const clock = new FakeClock(1_700_000_000_000);
    await using bed = await openSqliteBed(clock);
    const caller = new RandomCaller({ store: bed.store, clock, seed });
    const [done, states] = [new Set<string>(), new Set<string>()];
    for (let round = 0; round < 200; round += 1) {
      // Calls at the same time share a transaction.
      const names = await Promise.all(Array.from({ length: 4 }, () => caller.act()));
      for (const name of names) done.add(name);
      checkCounts(bed.path, `round ${round}: ${names.join(', ')}`);
      for (const [state, n] of Object.entries(await bed.store.counts())) if (n > 0) states.add(state);
    }
    assert.deepEqual([done.size, states.size], [11, 8], 'each action and each state was there');
  });
}

test('a call that is rolled back counts nothing, and those before it in the same transaction still count', async () => {
  await using bed = await openSqliteBed();
  const worker = await registerWorker(bed.store, 'w');
  await bed.store.submit([makeRollout('a'), makeRollout('b'), makeRollout('c', { priority: 1 })], { maxQueued: 10 });
  const { db, statements, counts, commit, at } = openConnection(bed.path, { readOnly: false });
  const claim = () => writes.claim(at(Date.now()), { worker, limit: 1, labels: {} });
  db.exec('BEGIN IMMEDIATE');
  await claim();
  const { mark } = counts;
  statements.run('SAVEPOINT call');
  await claim(); // which first writes what the call before it changed
  await claim();
  statements.run('ROLLBACK TO call');
  counts.undo(mark);
  commit();
  db.close();
  checkCounts(bed.path, 'after the commit');
  assert.deepEqual([(await bed.store.counts()).queued, (await bed.store.counts()).init], [2, 1]);
});
