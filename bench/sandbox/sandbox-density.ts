// Many sandboxes on one machine: with 64 and 256 open at once under each driver, the time of each start, of a shell call while all are
// open and of a start from the warm pool, the memory of an idle sandbox, and whether anything is left behind.

import { access, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '@millrace/base/log';
import {
  idleMiB,
  openApptainerDriver,
  openBubblewrapDriver,
  openWarmPool,
  probeApptainer,
  type Sandbox,
  type SandboxDriver,
  type SandboxSpec,
} from '@millrace/sandbox';
import { makeTinyImage, processesInSandboxesOf } from '@millrace/testkit';
import { type BenchReport, type BenchRow, percentile } from '../report/report.ts';
import { measureSandboxMemory, type SandboxMemory } from './sandbox-memory.ts';
import { sample } from './shell.ts';

const counts = [64, 256];
/** As many as the init stage of a worker starts at once. */
const startersAtOnce = 16;
const timeoutMs = 60_000;

interface Subject {
  readonly driver: SandboxDriver;
  readonly spec: SandboxSpec;
  readonly runDir: string;
}

export async function runSandboxDensityBench(): Promise<BenchReport> {
  const probe = await probeApptainer();
  if (!probe.ok) throw new Error(`${probe.reason}; try: ${probe.remedy}`);
  const folder = await mkdtemp(join(tmpdir(), 'bench-'));
  try {
    const image = join(folder, 'image');
    await makeTinyImage(image);
    const [plain, contained] = [join(folder, 'b'), join(folder, 'a')];
    const subjects: Subject[] = [
      { driver: await openBubblewrapDriver({ runDir: plain, log: silentLog }), spec: {}, runDir: plain },
      { driver: await openApptainerDriver({ runDir: contained, log: silentLog }), spec: { image }, runDir: contained },
    ];
    const parts = [];
    for (const subject of subjects) parts.push(await measureDriver(subject));
    return toReport(parts);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface Crowd {
  readonly wanted: number;
  readonly start: number[];
  readonly call: number[];
  readonly memory: SandboxMemory[];
  readonly failures: string[];
  readonly left: string[];
}

interface DensityFigures {
  readonly name: string;
  readonly alone: number[];
  readonly warm: number[];
  readonly crowds: Crowd[];
}

async function measureDriver(subject: Subject): Promise<DensityFigures> {
  const { driver, spec } = subject;
  const alone = await measureAlone(subject);
  const warm = await measureWarm(driver, spec);
  const crowds: Crowd[] = [];
  for (const count of counts) crowds.push(await measureCrowd(subject, count));
  return { name: driver.name, alone, warm, crowds };
}

async function measureAlone({ driver, spec }: Subject): Promise<number[]> {
  await using sandbox = await driver.open(spec);
  await sample(100, () => sandbox.runShell(':', { timeoutMs }));
  return await sample(300, () => sandbox.runShell(':', { timeoutMs }));
}

/** From the call of `open` to the reply to the first command, with a ready sandbox in the pool. */
export async function measureWarm(driver: SandboxDriver, spec: SandboxSpec): Promise<number[]> {
  await using pool = openWarmPool(driver, { config: { sandboxes: 1, memoryMiB: idleMiB, maxAgeSeconds: 600 }, log: silentLog });
  const samples: number[] = [];
  for (let index = 0; index < 30; index += 1) {
    pool.expect(spec, 16);
    await pool.settled();
    const startMs = performance.now();
    await using sandbox = await pool.open(spec);
    await sandbox.runShell(':', { timeoutMs });
    samples.push(performance.now() - startMs);
  }
  return samples;
}

async function measureCrowd({ driver, spec, runDir }: Subject, wanted: number): Promise<Crowd> {
  const opened: Sandbox[] = [];
  const start: number[] = [];
  const failures: string[] = [];
  let begun = 0;
  const starter = async () => {
    while (begun++ < wanted) {
      const startMs = performance.now();
      try {
        const sandbox = await driver.open(spec);
        opened.push(sandbox);
        await sandbox.runShell(':', { timeoutMs });
        start.push(performance.now() - startMs);
      } catch (error) {
        failures.push(String(error));
      }
    }
  };
  await Promise.all(Array.from({ length: startersAtOnce }, starter));
  const call: number[] = [];
  for (const sandbox of opened) call.push(...(await sample(3, () => sandbox.runShell(':', { timeoutMs }))));
  const memory = await measureSandboxMemory(
    runDir,
    opened.map(({ id }) => id),
  );
  const groups = await Promise.all(opened.map(async ({ id }) => (await readFile(join(runDir, id, 'cgroups'), 'utf8')).split('\n')));
  await Promise.all(opened.map((sandbox) => sandbox[Symbol.asyncDispose]()));
  return { wanted, start, call, memory, failures, left: await listLeft(runDir, groups.flat().filter(Boolean)) };
}

async function listLeft(runDir: string, groups: readonly string[]): Promise<string[]> {
  const isThere = (path: string) =>
    access(path).then(
      () => true,
      () => false,
    );
  const leftGroups = await Promise.all(groups.map(async (group) => ((await isThere(group)) ? [group] : [])));
  const mounts = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').filter((line) => line.includes(`${runDir}/`));
  const folders = (await readdir(runDir)).filter((name) => name.startsWith('sb-'));
  const pids = (await processesInSandboxesOf(runDir)).map((pid) => `process ${pid}`);
  return [...folders, ...pids, ...mounts, ...leftGroups.flat()];
}

function toReport(parts: readonly DensityFigures[]): BenchReport {
  const rows: BenchRow[] = parts.flatMap(({ name, alone, warm, crowds }) => [
    { what: `${name}: shell call, one sandbox open`, unit: 'ms', samples: alone },
    { what: `${name}: taken from the warm pool, to its first answer`, unit: 'ms', samples: warm },
    ...crowds.flatMap(({ wanted, start, call, memory }) => [
      { what: `${name}: start of each of ${wanted}, ${startersAtOnce} at a time, to its first answer`, unit: 'ms', samples: start },
      { what: `${name}: shell call, ${wanted} sandboxes open`, unit: 'ms', samples: call },
      { what: `${name}: memory of an idle one of ${wanted}, PSS`, unit: 'MiB', samples: memory.flatMap(({ pssMiB }) => pssMiB ?? []) },
      { what: `${name}: the same, its control group`, unit: 'MiB', samples: memory.flatMap(({ groupMiB }) => groupMiB ?? []) },
    ]),
  ]);
  return {
    title: 'Many sandboxes at once',
    rows: rows.filter(({ samples }) => samples.length > 0),
    targets: parts.flatMap(toTargets),
    notes: parts.map(({ name, crowds }) => {
      const mib = idleOf(crowds.at(-1));
      return `${name}: 1,000 idle sandboxes would take ${((mib * 1000) / 1024).toFixed(1)} GiB (1,000 × ${mib.toFixed(1)} MiB).`;
    }),
  };
}

/** The median: PSS, or the memory of the control group if PSS cannot be read. */
function idleOf(crowd: Crowd | undefined): number {
  return percentile(crowd?.memory.map(({ pssMiB, groupMiB }) => pssMiB ?? groupMiB ?? Number.NaN) ?? [], 0.5);
}

function toTargets({ name, warm, crowds }: DensityFigures): { claim: string; kept: boolean }[] {
  const handOver = percentile(warm, 0.5);
  return [
    { claim: `${name}: warm hand-over p50 ${handOver.toFixed(2)} < 20 ms`, kept: handOver < 20 },
    ...crowds.map((crowd) => ({
      claim:
        `${name}: ${crowd.start.length} of ${crowd.wanted} answered, ${crowd.left.length} left behind ${[...crowd.failures, ...crowd.left].slice(0, 3).join('; ')}`.trim(),
      kept: crowd.start.length === crowd.wanted && crowd.left.length === 0,
    })),
    ...crowds.map((crowd) => ({
      claim: `${name}: an idle one of ${crowd.wanted} takes ${idleOf(crowd).toFixed(1)} MiB, at most the ${idleMiB} that the warm pool counts`,
      kept: idleOf(crowd) <= idleMiB,
    })),
  ];
}
