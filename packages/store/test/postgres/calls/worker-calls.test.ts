// The calls that run in sets: the usual case is answered by its one statement, the fence holds in it, what needs more runs alone, and
// placing chooses what `chooseBackend` chooses.

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { backendId, workerId } from '@millrace/protocol';
import { makeReport, makeRollout, PostgresServer, skipPostgres } from '@millrace/testkit';
import { type Candidate, chooseBackend } from '../../../src/backends/routing.ts';
import type { Claim } from '../../../src/claim.ts';
import { runSet } from '../../../src/postgres/calls/worker-calls.ts';
import { Session } from '../../../src/postgres/engine/session.ts';
import { openPostgresBed } from '../bed.ts';

const leaseMs = 60_000;
const backends = ['a', 'b', 'c', 'd'].map((id) => backendId.parse(id));

describe('sets of worker calls', { skip: skipPostgres }, () => {
  let opening: Promise<PostgresServer> | undefined;
  after(async () => (await opening)?.[Symbol.asyncDispose]());

  async function openRunning(count: number) {
    opening ??= PostgresServer.open();
    const bed = await openPostgresBed(await opening);
    const session = await Session.open(bed.address);
    const { store } = bed;
    for (const id of backends) await store.joinBackend({ id, url: `http://${id}`, dialect: 'vllm', policyVersion: 0, state: 'up' });
    await store.submit(
      Array.from({ length: count }, (_, index) => makeRollout(`r${index}`, { group: `g${index % 5}` })),
      { maxQueued: 1_000 },
    );
    const worker = workerId.parse('w');
    await store.registerWorker({ id: worker, host: 'h', pid: 1 }, { leaseMs });
    const claims = await store.claim(worker, count);
    const set = async (...calls: readonly (readonly [name: string, request: unknown])[]) => {
      const named = calls.map(([name, request]) => ({ name, request }));
      const replies = await runSet(session, named, { channel: 'none', nowMs: undefined, isRepeated: false });
      return calls.map((_, index) => (replies.has(index) ? { value: replies.get(index) } : 'alone'));
    };
    const close = async () => {
      await session.close();
      await bed[Symbol.asyncDispose]();
    };
    return { store, session, worker, claims, set, [Symbol.asyncDispose]: close };
  }

  test('are answered by one statement of each kind, unless they need more', async () => {
    await using opened = await openRunning(4);
    const { set, worker, claims, store } = opened;
    const [first, second, third] = claims as readonly Claim[] as readonly [Claim, Claim, Claim];
    const old = { ...second, attempt: 0 };
    const renewal = { worker, leaseMs, report: makeReport(1) };
    assert.deepEqual(
      await set(
        ['move', { claim: first, to: 'ready' }],
        ['move', { claim: old, to: 'ready' }],
        ['move', { claim: third, to: 'evaluate' }],
        ['place', { claim: second, options: {} }],
        ['renew', renewal],
        ['renew', { ...renewal, worker: 'gone' }],
        ['reportGate', { worker, pause: 0, generating: 1 }],
      ),
      [
        { value: true },
        { value: false },
        'alone',
        { value: undefined },
        { value: { alive: true, cancelled: [] } },
        { value: { alive: false, cancelled: [] } },
        { value: undefined },
      ],
    );
    assert.equal((await store.get(first.id))?.state, 'ready');
    await store.cancel(first.id, { tombstoneMs: 0 });
    const named = (some: readonly Claim[]) => ({ ...renewal, held: { claims: some, maxLosses: 3 } });
    assert.deepEqual(await set(['renew', named(claims)]), [{ value: { alive: true, cancelled: [first.id] } }]);
    assert.deepEqual(await set(['renew', named(claims.slice(1))]), ['alone']);
    await store.pausePolicy({ mode: 'wait' });
    assert.deepEqual(await set(['reportGate', { worker, pause: 0, generating: 0 }]), ['alone']);
  });

  test('place where `chooseBackend` would, in every situation of load, siblings, exclusion and stickiness', async () => {
    await using opened = await openRunning(60);
    const { store, session, set, claims } = opened;
    for (const to of ['ready', 'run'] as const) for (const claim of claims) await store.move(claim, to);
    const random = makeRandom(7);
    const pick = <T>(from: readonly T[]) => from[Math.floor(random() * from.length)];
    for (let round = 0; round < 120; round += 1) {
      const claim = pick(claims) as Claim;
      const [isSticky, exclude] = [random() < 0.5, backends.filter(() => random() < 0.15)];
      const routing = { affinityBound: 1 + random(), spillFactor: 1 + random(), spillRollouts: Math.floor(6 * random()) };
      await session.query("UPDATE backends SET state = CASE WHEN id = $1 THEN 'draining' ELSE 'up' END", [
        random() < 0.5 ? pick(backends) : '',
      ]);
      const rows = await session.query<Candidate & { here: boolean; up: boolean }>(
        `SELECT b.id, coalesce(l.in_flight, 0) - (b.id IS NOT DISTINCT FROM r.backend)::int AS "inFlight", coalesce(l.tokens, 0) AS tokens,
          (SELECT count(*) FROM rollouts o WHERE o.group_id = r.group_id AND o.seq <> r.seq AND o.backend = b.id) AS siblings,
          b.id IS NOT DISTINCT FROM r.backend AS here, b.state = 'up' AS up
         FROM rollouts r, backends b LEFT JOIN backend_loads l USING (id) WHERE r.id = $1 ORDER BY b.id`,
        [claim.id],
      );
      const here = rows.find((row) => row.here)?.id;
      const candidates = rows.filter((row) => row.up || (isSticky && row.here));
      const wanted = chooseBackend(candidates, { exclude, routing, ...(isSticky && here !== undefined && { current: here }) })?.id;
      const tokens = Math.floor(9_000 * random());
      assert.deepEqual(
        await set(['place', { claim, options: { exclude, isSticky, tokens, routing } }]),
        [{ value: wanted }],
        JSON.stringify({ round, rows, isSticky, exclude, routing }),
      );
    }
  });
});

/** Numbers from 0 to 1 that are the same in every run. */
function makeRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}
