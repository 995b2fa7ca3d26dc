// Measures the routing: hit rate of prefix caches, turn times and balance in a simulation, compared with simpler routers, and how
// evenly ten workers load the backends through the real store, compared with one worker and with ten independent ones.

import { join } from 'node:path';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import { backendId, workerId } from '@millrace/protocol';
import { makeRandom, makeRollout, makeTempFolder, moveUpTo } from '@millrace/testkit';
import { chooseBackend } from '../../packages/store/src/backends/routing.ts';
import type { Claim } from '../../packages/store/src/claim.ts';
import { openSqliteStore } from '../../packages/store/src/sqlite/sqlite.ts';
import type { BackendLease } from '../../packages/worker/src/inference/pool/lease.ts';
import { BackendPool } from '../../packages/worker/src/inference/pool/pool.ts';
import type { BenchReport, BenchRow } from '../report/report.ts';
import { groupSize, groups, type Router, type SimBackend, type SimReport, type SimRollout, simulate } from './routing-simulation.ts';

const seeds = [1, 2, 3, 4, 5];
const spillTurns = 8;

/** The rollout stays while its backend is up. */
const sticky =
  (choose: Router): Router =>
  (rollout, up) =>
    rollout.at?.isUp ? rollout.at : choose(rollout, up);

function pick(up: readonly SimBackend[], id: string | undefined): SimBackend {
  const found = up.find((one) => one.id === id) ?? up[0];
  if (!found) throw new Error('no backend is up');
  return found;
}

function toCandidates({ id, group, at }: SimRollout, up: readonly SimBackend[], ran: ReadonlyMap<string, number>) {
  return up.map((one) => ({
    id: one.id,
    inFlight: one.held.size - (one === at ? 1 : 0),
    tokens: [...one.held].reduce((sum, rollout) => sum + (rollout.id === id ? 0 : rollout.context), 0),
    siblings: ran.get(`${group} ${one.id}`) ?? 0,
  }));
}

function openOurs(): Router {
  const ran = new Map<string, number>();
  return (rollout, up) => {
    if (rollout.at?.isUp && rollout.turnsHere < spillTurns) return rollout.at;
    const current = rollout.at?.isUp ? { current: rollout.at.id } : {};
    const chosen = pick(up, chooseBackend(toCandidates(rollout, up, ran), current)?.id);
    rollout.turnsHere = 0;
    if (chosen !== rollout.at) ran.set(`${rollout.group} ${chosen.id}`, (ran.get(`${rollout.group} ${chosen.id}`) ?? 0) + 1);
    return chosen;
  };
}

const routers: Readonly<Record<string, (random: () => number) => Router>> = {
  'round robin each turn': () => {
    let next = 0;
    return (_, up) => pick(up, up[next++ % up.length]?.id);
  },
  'round robin, sticky': () => {
    let next = 0;
    return sticky((_, up) => pick(up, up[next++ % up.length]?.id));
  },
  'random, sticky': (random) => sticky((_, up) => pick(up, up[Math.floor(random() * up.length)]?.id)),
  'least in flight, sticky, no groups': () => sticky((rollout, up) => pick(up, chooseBackend(toCandidates(rollout, up, new Map()))?.id)),
  'Millrace: groups within a bound, spill': openOurs,
};

export async function runRoutingBench(): Promise<BenchReport> {
  const found = Object.entries(routers).map(([name, open]) => ({ name, runs: seeds.map((seed) => simulate(open, seed)) }));
  const measures: readonly [string, string, (run: SimReport) => readonly number[], 'better'?][] = [
    ['prompt tokens found in a cache', '%', ({ hitRate }) => [100 * hitRate], 'better'],
    ['time of a turn', 's', ({ turnS }) => turnS],
    ['until the last rollout ended', 's', ({ makespanS }) => [makespanS]],
    ['most in flight over the average', '×', ({ imbalance }) => imbalance],
    ['rollouts that changed their backend', '', ({ moves }) => [moves]],
  ];
  const rows: BenchRow[] = measures.flatMap(([what, unit, read, larger], measure) =>
    found.map(({ name, runs }, index) => ({
      what: `${what}: ${name}`,
      unit,
      samples: runs.flatMap(read),
      ...(larger ? { larger } : {}),
      ...(index === 0 || measure === 4 ? {} : { against: measure * found.length }),
    })),
  );
  const one = await spread(1, true);
  const ten = await spread(10, true);
  const alone = await spread(10, false);
  const base = rows.length;
  rows.push(
    { what: 'most less least in flight: ten independent workers', unit: 'rollouts', samples: alone },
    { what: 'most less least in flight: one worker', unit: 'rollouts', samples: one, against: base },
    { what: 'most less least in flight: ten workers through the store', unit: 'rollouts', samples: ten, against: base },
  );
  return {
    title: `Routing: ${groups} groups of ${groupSize} on 6 backends, one at half speed, one late, one that fails and returns`,
    rows,
    targets: [{ claim: 'ten workers balance like one', kept: Math.max(...ten) <= Math.max(...one) }],
    notes: [`The simulation runs in virtual time over ${seeds.length} seeds; the balance of workers is that of the real store.`],
  };
}

const turnover = 400;

/** Rollouts arrive at random workers and end in random order. Returns how uneven the backends are after each arrival. */
async function spread(workers: number, isShared: boolean): Promise<number[]> {
  const random = makeRandom(7);
  const pace = new Pace();
  await using stack = new AsyncDisposableStack();
  const folder = stack.use(await makeTempFolder('bench'));
  const store = stack.use(await openSqliteStore({ path: join(folder.path, 'store.db'), clock: systemClock, log: silentLog }));
  const names = ['a', 'b', 'c', 'd', 'e'];
  for (const name of names)
    await store.joinBackend({ id: backendId.parse(name), url: 'http://127.0.0.1:9', dialect: 'vllm', policyVersion: 0, state: 'up' });
  const pools = Array.from({ length: workers }, () =>
    stack.use(new BackendPool({ log: silentLog, pace, ...(isShared ? { placements: store } : {}) })),
  );
  for (const pool of pools) pool.update(await store.backends());
  const worker = workerId.parse('bench');
  await store.registerWorker({ id: worker, host: 'bench', pid: process.pid }, { leaseMs: 3_600_000 });
  await store.submit(
    Array.from({ length: turnover }, (_, index) => makeRollout(`r${index}`)),
    { maxQueued: turnover },
  );
  const running: { readonly rollout: Claim; readonly lease: BackendLease }[] = [];
  const uneven: number[] = [];
  for (const rollout of await store.claim(worker, turnover)) {
    await moveUpTo(store, rollout, 'run');
    const pool = pools[Math.floor(random() * pools.length)];
    if (!pool) throw new Error('there is no pool');
    running.push({ rollout, lease: await pool.acquire({ signal: new AbortController().signal, rollout }) });
    if (running.length > 100) {
      const [ended] = running.splice(Math.floor(random() * running.length), 1);
      if (ended) await store.move(ended.rollout, 'evaluate');
      ended?.lease[Symbol.dispose]();
    }
    const counts = names.map((name) => running.filter(({ lease }) => lease.id === name).length);
    uneven.push(Math.max(...counts) - Math.min(...counts));
  }
  return uneven;
}
