// What a rollout costs PostgreSQL and the servers: workers run whole rollouts as fast as they can, with a store each as baseline, and through a
// server. Counted in CPU, which a busy machine does not change.

import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { backendId } from '@millrace/protocol';
import { makeRollout, PostgresServer } from '@millrace/testkit';
import { systemClock } from '../../packages/base/src/clock.ts';
import { silentLog } from '../../packages/base/src/log.ts';
import { openStore } from '../../packages/store/src/open/open-store.ts';
import type { BenchReport, BenchRow } from '../report/report.ts';
import { askProcess } from './ask-process.ts';
import { DatabaseProbe, probeSettings } from './database-probe.ts';
import type { SimulationAnswer, SimulationOrder } from './server-process.ts';
import type { CostAnswer, CostOrder } from './store-cost-process.ts';

interface CostCase {
  readonly what: string;
  readonly workers: number;
  readonly rollouts: number;
  readonly isDirect: boolean;
}

const cases: readonly CostCase[] = [
  { what: '20 workers with the store itself', workers: 20, rollouts: 100, isDirect: true },
  { what: '20 workers through a server', workers: 20, rollouts: 100, isDirect: false },
  { what: '200 workers through a server', workers: 200, rollouts: 600, isDirect: false },
];
const backends = 64;
const submittedTogether = 1_000;
const mostCpuMs = 3;

interface CostMeasurement extends CostCase {
  readonly databaseMs: number;
  readonly serverMs: number;
  readonly commits: number;
  readonly perSecond: number;
}

export async function runStoreCostBench(): Promise<BenchReport> {
  await using stack = new AsyncDisposableStack();
  const settings = ['shared_buffers=512MB', 'max_wal_size=4GB', ...probeSettings];
  const database = stack.use(await PostgresServer.open({ isDurable: true, settings }));
  await prepare(database);
  const probe = stack.use(await DatabaseProbe.open(database));
  const forkOne = (program: string) =>
    stack.adopt(
      fork(fileURLToPath(new URL(program, import.meta.url)), {
        execArgv: ['--disable-warning=ExperimentalWarning', '--disable-warning=MODULE_TYPELESS_PACKAGE_JSON'],
      }),
      (child) => void child.disconnect(),
    );
  const [server, client] = [forkOne('./server-process.ts'), forkOne('./store-cost-process.ts')];
  const tellServer = (order: SimulationOrder) => askProcess<SimulationAnswer>(server, order);
  const opened = await tellServer({ kind: 'open', address: database.address, leaseMs: 60_000 });
  const servers = 'url' in opened ? [opened.url] : [];
  const readServerMs = async () => {
    const answer = await tellServer({ kind: 'cpu' });
    return 'cpuMs' in answer ? answer.cpuMs : 0;
  };
  const measured: CostMeasurement[] = [];
  for (const [index, one] of cases.entries()) {
    const from = one.isDirect ? { address: database.address } : { servers };
    const order: CostOrder = { workers: one.workers, rollouts: one.rollouts, name: `w${index}`, ...from };
    await readServerMs();
    const running = askProcess<CostAnswer>(client, order);
    const activity = await probe.watch(running);
    const { ended } = await running;
    const serverMs = (await readServerMs()) / ended;
    measured.push({
      ...one,
      databaseMs: activity.cpuMs / ended,
      serverMs,
      commits: activity.commits / ended,
      perSecond: ended / activity.seconds,
    });
    console.error(
      `${one.what}: ${JSON.stringify(measured.at(-1))}\n${activity.statements
        .slice(0, 8)
        .map(
          ({ text, calls, totalMs }) =>
            `  ${(totalMs / ended).toFixed(2)} ms a rollout in ${(calls / ended).toFixed(2)} calls: ${text.slice(0, 100)}`,
        )
        .join('\n')}`,
    );
  }
  return toReport(measured);
}

async function prepare(database: PostgresServer): Promise<void> {
  await using store = await openStore(database.address, { clock: systemClock, log: silentLog });
  for (let index = 0; index < backends; index += 1)
    await store.joinBackend({ id: backendId.parse(`backend-${index}`), url: `http://10.0.0.${index}:8000`, dialect: 'vllm', state: 'up' });
  const rollouts = cases.reduce((sum, one) => sum + one.rollouts, 0) * 1.2;
  for (let first = 0; first < rollouts; first += submittedTogether) {
    const some = Array.from({ length: submittedTogether }, (_, index) =>
      makeRollout(`r${first + index}`, { group: `g${Math.floor((first + index) / 8)}` }),
    );
    await store.submit(some, { maxQueued: 2 * rollouts + submittedTogether });
  }
}

function toReport(measured: readonly CostMeasurement[]): BenchReport {
  const rows = measured.flatMap(({ what, databaseMs, serverMs, commits }, at): BenchRow[] => {
    const against = at > 0 ? [{ against: 0 }, { against: 1 }] : [{}, {}];
    return [
      { what: `CPU of PostgreSQL for a rollout: ${what}`, unit: 'ms', samples: [databaseMs], ...against[0] },
      { what: `transactions for a rollout: ${what}`, unit: '', samples: [commits], ...against[1] },
      ...(at > 0 ? [{ what: `CPU of the server for a rollout: ${what}`, unit: 'ms', samples: [serverMs] }] : []),
    ];
  });
  const most = measured.at(-1);
  return {
    title: 'What a rollout costs PostgreSQL: a store for each worker, and one server for all',
    rows,
    targets: [
      {
        claim: `PostgreSQL needs at most ${mostCpuMs} ms of a processor for a rollout of ${most?.what}`,
        kept: most !== undefined && most.databaseMs <= mostCpuMs,
      },
    ],
    notes: [
      'Workers without sandboxes and backends run whole rollouts, one after the other: a claim, four moves and a placement, 21 turns in three writes, six renewals with their gate reports, an end with a short trajectory. Rollouts come in groups of eight. PostgreSQL flushes what has to be durable.',
    ],
  };
}
