// A simulation of up to 1,000 machines with 100,000 rollouts in flight on a real PostgreSQL: every machine has its own connections and makes
// the calls of a worker at the pace of one. It says where the database saturates, by which statement, and what its processes wait for.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { backendId } from '@millrace/protocol';
import { makeRollout, PostgresServer } from '@millrace/testkit';
import { systemClock } from '../../packages/base/src/clock.ts';
import { silentLog } from '../../packages/base/src/log.ts';
import { EventTail } from '../../packages/store/src/event-tail.ts';
import { openStore } from '../../packages/store/src/open/open-store.ts';
import { type BenchReport, type BenchRow, percentile } from '../report/report.ts';
import { type DatabaseActivity, DatabaseProbe, probeSettings } from './database-probe.ts';
import type { MachinesAnswer, MachinesOrder } from './machines-process.ts';
import { firstLeaseMs, type SimulatedLoad, type TimedCall, timedCalls } from './simulated-machine.ts';

export interface MachinesSizes {
  readonly counts: readonly number[];
  readonly settleMs: number;
  readonly windowMs: number;
}

const fullSizes: MachinesSizes = { counts: [50, 200, 500, 1_000], settleMs: 4_000, windowMs: 10_000 };
/** Twenty turns of half a minute: with 100 in flight, a machine ends one every six seconds. */
const load: SimulatedLoad = { inFlight: 100, turns: 20, turnMs: 30_000, leaseMs: 15_000 };
const processes = 2;
const backends = 64;
const submittedTogether = 5_000;
/** Of the rollouts that are due. */
const wanted = 0.9;

interface MachinesMeasurement {
  readonly machines: number;
  readonly due: number;
  readonly ended: number;
  readonly ms: Readonly<Record<TimedCall, readonly number[]>>;
  readonly turnsWritten: number;
  readonly leasesEnded: number;
  readonly failed: number;
  readonly clientCpuMs: number;
  readonly activity: DatabaseActivity;
}

export async function runMachinesBench({ counts, settleMs, windowMs } = fullSizes): Promise<BenchReport> {
  const most = Math.max(...counts);
  await using stack = new AsyncDisposableStack();
  const settings = [`max_connections=${2 * most + 50}`, 'shared_buffers=1GB', 'max_wal_size=4GB', ...probeSettings];
  const database = stack.use(await PostgresServer.open({ isDurable: true, settings }));
  await prepare(database, most);
  const probe = stack.use(await DatabaseProbe.open(database));
  await openServer(stack, database.address);
  const clients = Array.from({ length: processes }, () => stack.adopt(forkClient(), (child) => void child.disconnect()));
  const tell = (toOrder: (index: number) => MachinesOrder) => Promise.all(clients.map((child, index) => ask(child, toOrder(index))));
  const measured: MachinesMeasurement[] = [];
  let opened = 0;
  for (const machines of counts) {
    const names = Array.from({ length: machines - opened }, (_, index) => `m${opened + index}`);
    const { address } = database;
    // Those that run would keep the database too busy to open others.
    await tell(() => ({ kind: 'rest' }));
    await tell((index) => ({ kind: 'open', address, load, names: names.filter((_, at) => at % processes === index) }));
    await probe.run(startRunning);
    opened = machines;
    await tell(() => ({ kind: 'start' }));
    await pause(settleMs);
    await tell(() => ({ kind: 'measure' }));
    const activity = await probe.watch(pause(windowMs));
    measured.push(toMeasurement(machines, await tell(() => ({ kind: 'read' })), activity));
    console.error(`${machines} machines: ${describe(measured.at(-1))}`);
  }
  return toReport(measured);
}

/** What was claimed runs, on all backends alike, in one statement: 100,000 ways through all stages would take an hour. Leases start again. */
const startRunning = `BEGIN;
  UPDATE rollouts SET state = 'run', backend = 'backend-' || seq % ${backends}, backend_version = 0, context_tokens = 8000 WHERE state = 'init';
  UPDATE workers SET lease_until = (1000 * extract(epoch FROM clock_timestamp()))::bigint + ${firstLeaseMs} WHERE ended_at IS NULL;
  SELECT append_log('[]'::json, '{}'::bigint[], 'none');
  COMMIT; ANALYZE rollouts, submissions, workers, events`;

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

/** The server: reads every event. */
async function openServer(stack: AsyncDisposableStack, address: string): Promise<void> {
  const store = stack.use(await openStore(address, { clock: systemClock, log: silentLog }));
  stack.use(new EventTail({ store, after: await store.lastEventId(), clock: systemClock, log: silentLog }));
}

function forkClient(): ChildProcess {
  return fork(fileURLToPath(new URL('./machines-process.ts', import.meta.url)), { execArgv: ['--disable-warning=ExperimentalWarning'] });
}

async function ask(child: ChildProcess, order: MachinesOrder): Promise<MachinesAnswer> {
  const over = new AbortController();
  const [message, exit] = [once(child, 'message', over), once(child, 'exit', over)];
  for (const one of [message, exit]) one.catch(() => {}); // the other came first
  child.send(order);
  const [answer] = await Promise.race([message, exit]);
  over.abort();
  if (typeof answer !== 'object' || answer === null) throw new Error(`a process of machines ended with ${answer}`);
  return answer as MachinesAnswer;
}

function toMeasurement(machines: number, answers: readonly MachinesAnswer[], activity: DatabaseActivity): MachinesMeasurement {
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
    ],
    notes: [
      `Every machine is one worker with ${load.inFlight} rollouts of ${load.turns} turns, ${load.turnMs / 1000} s a turn, with two connections of its own. The calls are those of a worker; sandboxes and backends take no part. The simulated machines share the cores with PostgreSQL.`,
      ...measured.map((one) => `${one.machines} machines: ${describe(one)}.`),
    ],
  };
}

function isKept({ ended, due }: MachinesMeasurement): boolean {
  return ended >= wanted * due;
}

function toRows(one: MachinesMeasurement, at: number): BenchRow[] {
  const { machines, due, ended, ms } = one;
  const first = 4 * at;
  return [
    { what: `${machines} machines: rollouts due`, unit: '1/s', samples: [due], larger: 'better' },
    { what: `${machines} machines: rollouts ended`, unit: '1/s', samples: [ended], larger: 'better', against: first },
    { what: `${machines} machines: a renewal`, unit: 'ms', samples: ms.renew, ...(at > 0 && { against: 2 }) },
    { what: `${machines} machines: a claim`, unit: 'ms', samples: ms.claim, ...(at > 0 && { against: 3 }) },
  ];
}

/** Where the time went. */
function describe(one: MachinesMeasurement | undefined): string {
  if (one === undefined) return '';
  const { activity, clientCpuMs, leasesEnded, failed, ms } = one;
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
    `PostgreSQL used ${cores(activity.cpuMs)} cores and the simulation ${cores(clientCpuMs)}, ${perSecond(activity.commits)} transactions and ${perSecond(activity.walBytes / 1024)} KiB of log a second`,
    `${perSecond(one.ended * activity.seconds)} ends, ${Math.round(one.turnsWritten)} turns, ${perSecond(ms.renew.length)} renewals a second, ${leasesEnded} leases ended, ${failed} calls failed`,
    `p99 of a renewal ${p99(ms.renew)}, of a look ${p99(ms.look)}`,
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
