// The chaos run: a whole service runs rollouts and batches in real sandboxes while its processes, its store, its clock and everything
// around it fail. Afterwards nothing acknowledged may be lost, doubled, leaked or stuck.

import { chmod, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openFakeBackend } from '../fake-backend/fake-backend.ts';
import { longTailLatency } from '../fake-backend/faults.ts';
import { qwen3Folder } from '../models/qwen3.ts';
import { PostgresServer } from '../postgres/postgres-server.ts';
import { TestMachine } from '../service/machine.ts';
import { TestService } from '../service/service.ts';
import { makeTempFolder } from '../temp-folder.ts';
import { type ChaosBooks, checkBooks } from './books.ts';
import { databaseFaults } from './faults/database-faults.ts';
import { edgeFaults } from './faults/edge-faults.ts';
import { machineFaults } from './faults/machine-faults.ts';
import { processFaults } from './faults/process-faults.ts';
import { storeFaults } from './faults/store-faults.ts';
import { ChaosLoad } from './load.ts';
import { controlVariable, policy } from './scene/chaos-play.ts';
import { openLogCounts } from './scene/log-counts.ts';
import { type MachineNetwork, machineNetworkSkip, openMachineNetwork } from './scene/machine-network.ts';
import { type ChaosKind, chaosKinds, type PlannedFault, planFaults } from './scene/plan.ts';
import { openPreload, type Preload } from './scene/preload.ts';
import { openReceiver } from './scene/receiver.ts';
import type { CauseFault, ChaosMachine, Scene } from './scene/scene.ts';
import { mountSmallDisk, type SmallDisk, smallDiskSkip } from './scene/small-disk.ts';

interface ChaosOptions {
  readonly faults: number;
  /** The plan of the faults is a function of it. What they hit also depends on the machine. */
  readonly seed: number;
  /** SQLite's unless set. */
  readonly store?: ChaosStore;
  onProgress?(line: string): void;
}

export type ChaosStore = 'sqlite' | 'postgres';

interface FaultCount {
  readonly faults: number;
  /** Known to have reached the service: a log event, a delayed call, a broken connection. */
  readonly hit: number;
}

export interface ChaosReport extends ChaosBooks {
  readonly seed: number;
  readonly faults: Readonly<Partial<Record<ChaosKind, FaultCount>>>;
  /** Kinds that this machine cannot cause, with the reason. */
  readonly skipped: Readonly<Partial<Record<ChaosKind, string>>>;
  readonly rollouts: number;
  readonly batches: number;
  /** What the service logged as warnings and errors, by event. */
  readonly logged: Readonly<Record<string, number>>;
}

const leaseMs = 2000;
const longestPauseMs = 1000;
/** Holds the store of the whole run: ten rollouts for each fault, and the write-ahead log; a service starts with half a gigabyte free. */
const toDiskMib = (faults: number) => 768 + Math.ceil(faults / 4);

const causes: Readonly<Record<ChaosKind, CauseFault>> = {
  ...processFaults,
  ...storeFaults,
  ...databaseFaults,
  ...machineFaults,
  ...edgeFaults,
};
/** Kinds that need a store in PostgreSQL. */
const clusterKinds: ReadonlySet<ChaosKind> = new Set(Object.keys({ ...databaseFaults, ...machineFaults }) as ChaosKind[]);
const key = 'a-key-of-the-chaos-run';

export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { faults, seed, store = 'sqlite', onProgress = () => {} } = options;
  await using stack = new AsyncDisposableStack();
  const scene = await openScene(stack, { faults, store });
  const skipped = findSkipped(scene);
  const kinds = (Object.keys(chaosKinds) as ChaosKind[]).filter(
    (kind) => skipped[kind] === undefined && (!clusterKinds.has(kind) || scene.database),
  );
  const plan = planFaults({ faults, seed, kinds });
  const load = new ChaosLoad(scene.service.client, { webhook: scene.receiver.url });
  const enough = new AbortController();
  const loaded = load.run(enough.signal);
  const counts: Partial<Record<ChaosKind, { faults: number; hit: number }>> = {};
  let begun = 0;
  const causeOne = async (fault: PlannedFault) => {
    const hit = await causes[fault.kind](scene, fault);
    const { faults: before, hit: hits } = counts[fault.kind] ?? { faults: 0, hit: 0 };
    counts[fault.kind] = { faults: before + 1, hit: hits + Number(hit) };
    begun += 1;
    onProgress(`${begun} of ${faults}: ${fault.kind}${hit ? '' : ' (not seen by the service)'}, ${load.rollouts.size} rollouts accepted`);
  };
  try {
    await Promise.all([...plan.values()].map((lane) => runLane(lane, causeOne)));
    enough.abort();
    await loaded;
    onProgress('no fault is under way; waiting for what runs, then checking the books');
    const books = await checkBooks(scene, load);
    const logged = Object.fromEntries([...scene.log.read()].sort(([a], [b]) => a.localeCompare(b)));
    return { seed, faults: counts, skipped, rollouts: load.rollouts.size, batches: load.batches.size, logged, ...books };
  } catch (error) {
    onProgress((await scene.service.log()).slice(-20_000));
    onProgress(((await scene.machine?.processes.log()) ?? '').slice(-20_000));
    throw error;
  } finally {
    enough.abort();
  }
}

async function runLane(lane: readonly PlannedFault[], causeOne: (fault: PlannedFault) => Promise<void>): Promise<void> {
  for (const fault of lane) {
    await pause(fault.pause * longestPauseMs);
    await causeOne(fault);
  }
}

function findSkipped({ preload, database }: Scene): Partial<Record<ChaosKind, string>> {
  const reasonOf = (control: 'clock' | 'sync') => preload.missing.find((one) => one.control === control)?.reason;
  const [clock, sync, network] = [reasonOf('clock'), reasonOf('sync'), database ? machineNetworkSkip : false];
  const machineClock = network || (database && clock);
  return {
    ...(network && { 'cut-network': network, 'kill-machine': network }),
    ...(machineClock && { 'machine-clock': machineClock }),
    ...(smallDiskSkip && { 'disk-full': smallDiskSkip }),
    ...(clock !== undefined && { 'clock-step': clock }),
    ...(sync !== undefined && { 'slow-sync': sync }),
  };
}

async function openScene(stack: AsyncDisposableStack, { faults, store }: { faults: number; store: ChaosStore }): Promise<Scene> {
  const controls = stack.use(await makeTempFolder('chaos')).path;
  const preload = openPreload(controls);
  const disk: SmallDisk | undefined = smallDiskSkip ? undefined : stack.use(await mountSmallDisk({ mib: toDiskMib(faults) }));
  const network = store === 'sqlite' || machineNetworkSkip ? undefined : stack.use(await openMachineNetwork());
  const host = network && { host: network.hostAddress };
  const database = store === 'postgres' ? stack.use(await openDatabase({ disk, preload, controls, network })) : undefined;
  const receiver = stack.use(await openReceiver());
  const latencyMs = longTailLatency({ medianMs: 250 });
  const openBackend = async () => stack.use(await openFakeBackend({ policy, latencyMs, ...host }));
  const backends = [await openBackend(), await openBackend()];
  const service = stack.use(
    await TestService.open({
      workers: 2,
      tokenizer: qwen3Folder(),
      scenarios: [fileURLToPath(new URL('./scene/chaos-play.ts', import.meta.url))],
      pipeline: { leaseMs, maxLosses: 1_000_000, retryDelayMs: 50, initSlots: 4, readySlots: 8, runSlots: 24, handBackMs: 2000 },
      inference: { stallMs: 1500, tokenMs: 0 },
      retention: { endedHours: 24, eventsHours: 24 },
      env: { ...preload.env, [controlVariable]: controls },
      ...(host && { http: { ...host, keys: [key] } }),
      ...(database ? { store: { address: database.address } } : disk && { data: disk.path }),
    }),
  );
  for (const [index, { url }] of backends.entries()) await service.client.backends.join({ id: `backend-${index}`, url });
  const machine = network && database && (await openMachine(stack, { network, service, controls }));
  const log = stack.use(openLogCounts(service.logPath));
  return {
    ...{ service, leaseMs, controls, preload, receiver, backends, log },
    ...(disk && { disk }),
    ...(database && { database }),
    ...(machine && { machine }),
  };
}

interface MachinePlace {
  readonly network: MachineNetwork;
  readonly service: TestService;
  readonly controls: string;
}

/** It reaches the service, with its store, and the backends over its own network only. */
async function openMachine(stack: AsyncDisposableStack, { network, service, controls }: MachinePlace): Promise<ChaosMachine> {
  const preload = openPreload(stack.use(await makeTempFolder('chaos-machine')).path);
  const processes = stack.use(
    await TestMachine.open({
      url: service.url,
      key,
      name: 'far-away',
      workers: 1,
      env: { ...preload.env, [controlVariable]: controls },
      enter: network.enter,
    }),
  );
  // What it waits for must be reachable when it is closed, also after a fault that failed half-way.
  stack.defer(() => network.join());
  return { processes, network, preload, log: stack.use(openLogCounts(processes.logPath)) };
}

interface DatabasePlace {
  readonly disk: SmallDisk | undefined;
  readonly network: MachineNetwork | undefined;
  readonly preload: Preload;
  readonly controls: string;
}

/** On the small disk, with a clock that can step and a slow fsync, as another user. */
async function openDatabase({ disk, network, preload, controls }: DatabasePlace): Promise<PostgresServer> {
  await chmod(controls, 0o755);
  await Promise.all((await readdir(controls)).map((name) => chmod(join(controls, name), name === 'sync' ? 0o666 : 0o755)));
  return await PostgresServer.open({
    isDurable: true,
    env: preload.env,
    ...(disk && { folder: disk.path }),
    ...(network && { host: network.hostAddress }),
  });
}
