// A simulation of up to 1,000 machines with 100,000 rollouts in flight on a real PostgreSQL, through real servers: every machine makes the calls
// of a worker at the pace of one. It says what PostgreSQL and the servers need for a rollout, and where they saturate.

import { type ChildProcess, fork } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { backendId } from '@millrace/protocol';
import { makeRollout, PostgresServer } from '@millrace/testkit';
import { systemClock } from '../../packages/base/src/clock.ts';
import { silentLog } from '../../packages/base/src/log.ts';
import { openStore } from '../../packages/store/src/open/open-store.ts';
import { type BenchReport, type BenchRow, percentile } from '../report/report.ts';
import { askProcess } from './ask-process.ts';
import { type DatabaseActivity, DatabaseProbe, probeSettings } from './database-probe.ts';
import type { MachinesAnswer, MachinesOrder } from './machines-process.ts';
import type { SimulationAnswer, SimulationOrder } from './server-process.ts';
import { type SimulatedLoad, type TimedCall, timedCalls } from './simulated-machine.ts';

export interface MachinesSizes {
  readonly counts: readonly number[];
  readonly servers: number;
  readonly settleMs: number;
  readonly windowMs: number;
}

const fullSizes: MachinesSizes = { counts: [50, 200, 500, 1_000], servers: 2, settleMs: 5_000, windowMs: 15_000 };
/** Twenty turns of half a minute: with 100 in flight, a machine ends one every six seconds. */
const load: SimulatedLoad = { inFlight: 100, turns: 20, turnMs: 30_000, leaseMs: 15_000 };
const processes = 2;
const backends = 64;
const submittedTogether = 5_000;
/** Of the rollouts that are due. */
const wanted = 0.9;
/** Of PostgreSQL for a rollout, from its claim to its end, with its turns and its share of the renewals. */
const mostCpuMs = 3;

interface MachinesMeasurement {
  readonly machines: number;
  readonly due: number;
  readonly ended: number;
  readonly ms: Readonly<Record<TimedCall, readonly number[]>>;
  readonly turnsWritten: number;
  readonly leasesEnded: number;
  readonly failed: number;
  readonly clientCpuMs: number;
  readonly serverCpuMs: number;
  readonly activity: DatabaseActivity;
}

export async function runMachinesBench({ counts, servers: serverCount, settleMs, windowMs } = fullSizes): Promise<BenchReport> {
  const most = Math.max(...counts);
  await using stack = new AsyncDisposableStack();
  const settings = ['shared_buffers=1GB', 'max_wal_size=4GB', ...probeSettings];
  const database = stack.use(await PostgresServer.open({ isDurable: true, settings }));
  await prepare(database, most);
  const probe = stack.use(await DatabaseProbe.open(database));
  const forkOne = (program: string) => stack.adopt(forkProgram(program), (child) => void child.disconnect());
  const backs = Array.from({ length: serverCount }, () => forkOne('./server-process.ts'));
  const tellServers = (order: SimulationOrder) => Promise.all(backs.map((child) => askProcess<SimulationAnswer>(child, order)));
  const opening = await tellServers({ kind: 'open', address: database.address, leaseMs: load.leaseMs });
  const servers = opening.flatMap((answer) => ('url' in answer ? [answer.url] : []));
  const readServerCpuMs = async () =>
    (await tellServers({ kind: 'cpu' })).reduce((sum, answer) => sum + ('cpuMs' in answer ? answer.cpuMs : 0), 0);
  const clients = Array.from({ length: processes }, () => forkOne('./machines-process.ts'));
  const tell = (toOrder: (index: number) => MachinesOrder) =>
    Promise.all(clients.map((child, index) => askProcess<MachinesAnswer>(child, toOrder(index))));
  const measured: MachinesMeasurement[] = [];
  let opened = 0;
  for (const machines of counts) {
    const names = Array.from({ length: machines - opened }, (_, index) => `m${opened + index}`);
    // Those that run would keep the database too busy to open others.
    await tell(() => ({ kind: 'rest' }));
    await tell((index) => ({ kind: 'open', servers, load, names: names.filter((_, at) => at % processes === index) }));
    await probe.run(startRunning);
    opened = machines;
    await tell(() => ({ kind: 'start' }));
    await pause(settleMs);
    await tell(() => ({ kind: 'measure' }));
    await readServerCpuMs();
    const activity = await probe.watch(pause(windowMs));
    const serverCpuMs = await readServerCpuMs();
    measured.push(toMeasurement(machines, await tell(() => ({ kind: 'read' })), { activity, serverCpuMs }));
    console.error(`${machines} machines: ${describe(measured.at(-1))}`);
  }
  return toReport(measured);
}

/** What was claimed runs, on all backends alike, in one statement: 100,000 ways through all stages would take an hour. */
const startRunning = `UPDATE rollouts SET state = 'run', backend = 'backend-' || seq % ${backends}, backend_version = 0, context_tokens = 8000
  WHERE state = 'init'; ANALYZE rollouts, submissions, workers, events`;

/** Enough for all machines, and for what ends meanwhile. */
async function prepare(database: PostgresServer, machines: number): Promise<void> {
  await using store = await openStore(database.address, { clock: systemClock, log: silentLog });
  for (let index = 0; index < backends; index += 1)
    await store.joinBackend({ id: backendId.parse(`backend-${index}`), url: `http://10.0.0.${index}:8000`, dialect: 'vllm', state: 'up' });
  const rollouts = 1.3 * machines * load.inFlight;
  for (let first = 0; first < rollouts; first += submittedTogether) {
    const some = Array.from({ length: submittedTogether }, (_, index) => makeRollout(`r${first + index}`));
    await store.submit(some, { maxQueued: 2 * rollouts + submittedTogether });
  }
}

function forkProgram(program: string): ChildProcess {
  return fork(fileURLToPath(new URL(program, import.meta.url)), {
    execArgv: ['--disable-warning=ExperimentalWarning', '--disable-warning=MODULE_TYPELESS_PACKAGE_JSON'],
  });
}

function toMeasurement(
  machines: number,
  answers: readonly MachinesAnswer[],
  { activity, serverCpuMs }: Pick<MachinesMeasurement, 'activity' | 'serverCpuMs'>,
): MachinesMeasurement {
  const sum = (pick: (answer: MachinesAnswer) => number) => answers.reduce((total, answer) => total + pick(answer), 0);
  const msOf = (call: TimedCall) => answers.flatMap(({ ms }) => ms[call]);
  return {
    machines,
    due: (machines * load.inFlight * 1000) / (load.turns * load.turnMs),
    ended: msOf('end').length / activity.seconds,
    ms: Object.fromEntries(timedCalls.map((call) => [call, msOf(call)])) as Record<TimedCall, number[]>,
    turnsWritten: sum(({ turnsWritten }) => turnsWritten) / activity.seconds,
    leasesEnded: sum(({ leasesEnded }) => leasesEnded),
    failed: sum(({ failed }) => failed),
    clientCpuMs: sum(({ cpuMs }) => cpuMs),
    serverCpuMs,
    activity,
  };
}

function toReport(measured: readonly MachinesMeasurement[]): BenchReport {
  const kept = measured.filter(isKept);
  const most = measured.at(-1);
  return {
    title: `Machines: a simulation of ${most?.machines.toLocaleString('en')} machines with ${((most?.machines ?? 0) * load.inFlight).toLocaleString('en')} rollouts in flight, on a real PostgreSQL`,
    rows: measured.flatMap(toRows),
    targets: [
      {
        claim: `${most?.machines.toLocaleString('en')} machines end at least ${100 * wanted} % of the rollouts that are due; the most that do are ${kept.at(-1)?.machines ?? 0}`,
        kept: kept.length === measured.length,
      },
      {
        claim: `PostgreSQL needs at most ${mostCpuMs} ms of a processor for a rollout with ${most?.machines.toLocaleString('en')} machines`,
        kept: most !== undefined && cpuOf(most) <= mostCpuMs,
      },
    ],
    notes: [
      `Every machine is one worker with ${load.inFlight} rollouts of ${load.turns} turns, ${load.turnMs / 1000} s a turn, and reaches the store through servers, over HTTP. The calls are those of a worker; sandboxes and backends take no part, and trajectories are short. Simulated machines and servers share the cores with PostgreSQL, so CPU for a rollout is the figure to compare; how many machines it takes to fill a core follows from it.`,
      ...measured.map((one) => `${one.machines} machines: ${describe(one)}.`),
    ],
  };
}

function isKept({ ended, due }: MachinesMeasurement): boolean {
  return ended >= wanted * due;
}

function toRows(one: MachinesMeasurement, at: number): BenchRow[] {
  const { machines, due, ended, ms } = one;
  const first = 6 * at;
  return [
    { what: `${machines} machines: rollouts due`, unit: '1/s', samples: [due], larger: 'better' },
    { what: `${machines} machines: rollouts ended`, unit: '1/s', samples: [ended], larger: 'better', against: first },
    { what: `${machines} machines: CPU of PostgreSQL for a rollout`, unit: 'ms', samples: [cpuOf(one)], ...(at > 0 && { against: 2 }) },
    {
      what: `${machines} machines: CPU of the servers for a rollout`,
      unit: 'ms',
      samples: [one.serverCpuMs / endsOf(one)],
      ...(at > 0 && { against: 3 }),
    },
    { what: `${machines} machines: a renewal`, unit: 'ms', samples: ms.renew, ...(at > 0 && { against: 4 }) },
    { what: `${machines} machines: a claim`, unit: 'ms', samples: ms.claim, ...(at > 0 && { against: 5 }) },
  ];
}

function endsOf({ ended, activity }: MachinesMeasurement): number {
  return Math.max(1, ended * activity.seconds);
}

function cpuOf(one: MachinesMeasurement): number {
  return one.activity.cpuMs / endsOf(one);
}

/** Where the time went. */
function describe(one: MachinesMeasurement | undefined): string {
  if (one === undefined) return '';
  const { activity, clientCpuMs, serverCpuMs, leasesEnded, failed, ms } = one;
  const perSecond = (value: number) => Math.round(value / activity.seconds).toLocaleString('en');
  const cores = (cpuMs: number) => (cpuMs / 1000 / activity.seconds).toFixed(2);
  const all = activity.statements.reduce((sum, { totalMs }) => sum + totalMs, 0);
  const top = activity.statements
    .slice(0, 4)
    .map(
      ({ text, calls, totalMs }) =>
        `${Math.round((100 * totalMs) / all)} % \`${shorten(text)}\` (${perSecond(calls)} a second, ${(totalMs / calls).toFixed(2)} ms each)`,
    );
  const waits = activity.waits.slice(0, 4).map(({ what, share }) => `${what} ${Math.round(100 * share)} %`);
  return [
    `PostgreSQL used ${cores(activity.cpuMs)} cores, ${cpuOf(one).toFixed(1)} ms for a rollout, the servers ${cores(serverCpuMs)} and the simulation ${cores(clientCpuMs)}, ${perSecond(activity.commits)} transactions and ${perSecond(activity.walBytes / 1024)} KiB of log a second`,
    `${perSecond(one.ended * activity.seconds)} ends, ${Math.round(one.turnsWritten)} turns, ${perSecond(ms.renew.length)} renewals a second, ${leasesEnded} leases ended, ${failed} calls failed`,
    `p99 of a renewal ${p99(ms.renew)}, of a claim ${p99(ms.claim)}, of an end ${p99(ms.end)}`,
    `statements: ${top.join('; ')}`,
    `processes: ${waits.join(', ')}`,
  ].join('. ');
}

function p99(ms: readonly number[]): string {
  return ms.length === 0 ? '- (none ended)' : `${Math.round(percentile(ms, 0.99))} ms`;
}

function shorten(text: string): string {
  return text.length > 70 ? `${text.slice(0, 70)}…` : text;
}
