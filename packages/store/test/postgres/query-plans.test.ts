// The plans that PostgreSQL really chose, for every statement of a day's work, on an empty, a small and a large store whose tables it knows
// nothing or something outdated about: none reads all rollouts.

import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { backendId, type WorkerId, workerId } from '@millrace/protocol';
import {
  makeBatch,
  makeFailure,
  makeGroup,
  makeReport,
  makeResult,
  makeRollout,
  makeTrajectory,
  PostgresServer,
  skipPostgres,
  toBatch,
  toGroup,
} from '@millrace/testkit';
import type { ClaimedRollout, Store } from '../../src/store.ts';
import { openPostgresBed } from './bed.ts';
import { schemaOf } from './log-transaction.ts';

const leaseMs = 60_000;
const rules = { maxLosses: 3 };
const settings = [
  'session_preload_libraries=auto_explain',
  'auto_explain.log_min_duration=0',
  'auto_explain.log_nested_statements=on',
  'logging_collector=on',
  'log_directory=log',
  'log_filename=plans.log',
  'autovacuum=off',
];

describe('plans in PostgreSQL', { skip: skipPostgres }, () => {
  let opening: Promise<PostgresServer> | undefined;
  after(async () => (await opening)?.[Symbol.asyncDispose]());

  async function readPlans(server: PostgresServer): Promise<string[]> {
    const folder = join(server.socketFolder, 'data', 'log');
    const texts = await Promise.all((await readdir(folder)).map((name) => readFile(join(folder, name), 'utf8')));
    return texts
      .join('\n')
      .split(/(?=\n[^\n\t]*duration: [\d.]+ ms {2}plan:)/)
      .slice(1);
  }

  for (const [name, rollouts, isKnown] of [
    ['an empty store', 0, false],
    ['a small store that was analyzed while it was empty', 40, true],
    ['a large store without statistics', 20_000, false],
  ] as const)
    test(`${name}: no statement reads all rollouts`, async () => {
      opening ??= PostgresServer.open({ settings });
      const server = await opening;
      await using bed = await openPostgresBed(server);
      const schema = schemaOf(bed.address);
      if (isKnown) await server.run(`SET search_path = ${schema}; ANALYZE`);
      await addRollouts(server, schema, rollouts);
      const before = (await readPlans(server)).length;
      await work(bed.store, `${rollouts}-`);
      await bed.settleLog();
      const plans = (await readPlans(server)).slice(before);
      assert.ok(plans.length > 100, `${plans.length} plans`);
      assert.ok(plans.some((plan) => plan.includes('rollouts_due')));
      for (const sql of [
        'WITH locked AS',
        'WITH head AS',
        'x (seq bigint, state text',
        'INSERT INTO turn_log',
        'evaluation_samples WHERE seq = ANY',
      ])
        assert.ok(
          plans.some((plan) => plan.includes(sql)),
          `${sql}: calls of several workers ran together`,
        );
      const whole = plans.filter((plan) => /Seq Scan on rollouts\b/.test(plan));
      assert.deepEqual(whole, []);
    });
});

/** A history of ended rollouts, and as many that wait in groups of eight. */
async function addRollouts(server: PostgresServer, schema: string, count: number): Promise<void> {
  await server.run(`SET search_path = ${schema};
    INSERT INTO rollouts (id, digest, scenario, group_id, state, class, created_at, queued_at, not_before, ended_at)
      SELECT kind || n, '', 'math', kind || n / 8, kind, 1, n, n, n, CASE kind WHEN 'done' THEN n END
      FROM unnest(ARRAY['done', 'queued']) AS kind, generate_series(1, ${count / 2}) AS n;
    INSERT INTO submissions SELECT seq, '{"scenario":"math","task":{"question":"?"}}' FROM rollouts`);
}

/** What servers, callers and workers of two machines do. */
async function work(store: Store, prefix: string): Promise<void> {
  const submit = (name: string, count: number) =>
    store.submit(
      Array.from({ length: count }, (_, index) => makeRollout(`${prefix}${name}${index}`, { group: `${name}${index % 3}` })),
      { maxQueued: 1_000_000 },
    );
  await store.joinBackend({ id: backendId.parse('b'), url: 'http://b', dialect: 'vllm', state: 'up' });
  const workers = await Promise.all(
    ['one', 'two'].map(async (host) => {
      const id = workerId.parse(`${prefix}${host}`);
      await store.registerWorker({ id, host, pid: 1 }, { leaseMs });
      return id;
    }),
  );
  const [one, two] = workers as [(typeof workers)[0] & string, (typeof workers)[0] & string];
  await submit('plain', 30);
  const claims: ClaimedRollout[] = [];
  for (let round = 0; round < 8; round += 1) for (const worker of [one, two]) claims.push(...(await store.claim(worker, 2)));
  for (const [index, claim] of claims.entries()) {
    for (const to of ['ready', 'run'] as const) await store.move(claim, to);
    await store.place(claim, { isSticky: index % 2 === 0 });
    await store.appendEvents([{ kind: 'turn-end', rolloutId: claim.id, data: {} }]);
    await store.noteTraffic({ contexts: [{ claim, tokens: index }], errors: [] });
    if (index % 4 === 0) await store.retry(claim, makeFailure('backend-failed', 1), { delayMs: index });
    if (index % 4 === 1) await store.release(claim);
    if (index % 4 === 2) await store.finish(claim, { state: 'done', result: makeResult(1), trajectory: makeTrajectory(claim.id, 1) });
    if (index % 4 === 3) await store.cancel(claim.id, { tombstoneMs: 0 });
  }
  for (const worker of [one, two]) {
    await store.renew(worker, {
      leaseMs,
      report: makeReport(1),
      held: { claims: claims.filter((claim) => claim.worker === worker), ...rules },
    });
    await store.reportGate(worker, { pause: 0, generating: 0 });
  }
  await workTogether(store, [one, two], () => submit('together', 60));
  await store.expire({ leaseMs, ...rules });
  await store.dropWorker(one, rules);
  await store.oldestOn(two, [{ id: backendId.parse('b'), tokens: 100 }]);
  for (const read of [store.counts, store.classes, store.workers, store.backendLoads, store.load, store.openBatches]) await read();
  for (const filter of [
    {},
    { state: 'queued' },
    { prefix: 'p' },
    { group: toGroup('plain1') },
    { scenario: 'math', order: 'newest' },
  ] as const)
    await store.list({ limit: 5, ...filter });
  const batch = `${prefix}batch`;
  await store.createBatch(makeBatch(batch, { target: 1, count: 2 }));
  await store.beginGroup(makeGroup(batch, 0));
  await store.settleGroup({ group: toGroup(`${batch}:0`), batch: toBatch(batch), state: 'delivered', members: [] });
  await store.retain({ endedMs: 1, eventsMs: 1 });
}

/** The same calls of both at the same moment, again and again: not every round is one tick. */
async function workTogether(store: Store, workers: readonly WorkerId[], submitMore: () => Promise<unknown>): Promise<void> {
  await submitMore();
  for (let round = 0; round < 6; round += 1) {
    const claims = (await Promise.all(workers.map((worker) => store.claim(worker, 3)))).flat();
    for (const to of ['ready', 'run'] as const) await Promise.all(claims.map((claim) => store.move(claim, to)));
    const turns = [{ turn: 1, body: Uint8Array.of(1) }];
    await Promise.all([
      ...workers.map((worker) =>
        store.appendTurns(
          worker,
          claims.map(({ id, attempt }) => ({ id, attempt, after: 0, turns })),
        ),
      ),
      ...claims.map((claim) => store.noteTraffic({ contexts: [{ claim, tokens: 5 }], errors: [] })),
    ]);
    await Promise.all(claims.map((claim) => store.move(claim, 'evaluate')));
    const ending = { state: 'done', result: makeResult(1) } as const;
    await Promise.all(claims.map((claim) => store.finish(claim, { ...ending, trajectory: makeTrajectory(claim.id, claim.attempt) })));
    const [first] = claims;
    if (first) await store.finish(first, { ...ending, trajectory: makeTrajectory(first.id, first.attempt) }, { isRepeated: true });
    for (const worker of workers) await store.unanswered(worker, claims);
  }
}
