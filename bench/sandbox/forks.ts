// What forking saves: n siblings whose set-up is a git clone and a pip install from a local folder, prepared separately and on top of one
// prepared layer, for bubblewrap and for Apptainer.

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { silentLog } from '@millrace/base/log';
import {
  holdLayers,
  LayerCache,
  openApptainerDriver,
  openBubblewrapDriver,
  type Sandbox,
  type SandboxDriver,
  type SandboxSpec,
} from '@millrace/sandbox';
import { type BenchReport, type BenchRow, percentile } from '../report/report.ts';
import { makeGitImage, makeSource } from './forks-source.ts';
import { measureWarm } from './sandbox-density.ts';

const timeoutMs = 600_000;
const siblings = [8, 16];
const setup = `set -e; git clone --quiet file:///workspace/source/repository.git repository
python3 -m pip --quiet --disable-pip-version-check --no-cache-dir install --no-index --find-links source/wheels --target site bench0 bench1 bench2 bench3 2>&1; rm -rf source`;
const look =
  'git -C repository log --oneline | wc -l; PYTHONPATH=site python3 -c "import bench0.part1, bench3.part1; print(bench3.part1.value)"';

interface ForkFigures {
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly mib: number;
  readonly startsMs: readonly number[];
}

interface ForkSubject {
  readonly driver: SandboxDriver;
  readonly spec: SandboxSpec;
  readonly source: string;
  readonly runDir: string;
}

export async function runForksBench(): Promise<BenchReport> {
  const folder = await mkdtemp(join(tmpdir(), 'bench-'));
  try {
    const source = join(folder, 'source');
    await makeSource(source);
    const image = join(folder, 'image');
    await makeGitImage(image);
    const [bare, boxed] = [join(folder, 'b'), join(folder, 'a')];
    const subjects: [string, ForkSubject][] = [
      ['bubblewrap', { driver: await openBubblewrapDriver({ runDir: bare, log: silentLog }), spec: {}, source, runDir: bare }],
      ['Apptainer', { driver: await openApptainerDriver({ runDir: boxed, log: silentLog }), spec: { image }, source, runDir: boxed }],
    ];
    const rows: BenchRow[] = [];
    const targets = [];
    for (const [name, subject] of subjects) {
      const handOver = await measureHandOver(subject);
      rows.push({ what: `${name}: a fork that was started ahead, to its first answer`, unit: 'ms', samples: handOver });
      const p50 = percentile(handOver, 0.5);
      targets.push({ claim: `${name}: a fork that was started ahead answers at p50 ${p50.toFixed(1)} < 20 ms`, kept: p50 < 20 });
      for (const count of siblings) {
        const own = await measure(subject, count, openOwn);
        const forked = await measure(subject, count, openForks(subject));
        rows.push(...toRows(`${name}, ${count} siblings`, { own, forked, base: rows.length }));
        const times = own.wallMs / forked.wallMs;
        targets.push({
          claim: `${name}, ${count} siblings: forks are ready ${times.toFixed(1)} times sooner, at least 2`,
          kept: times >= 2,
        });
      }
    }
    const notes = [
      'The set-up: a repository of 1,500 files cloned through git, four wheels of 75 modules each installed by pip; both come by `upload`. CPU is that of the whole machine, so it needs a quiet one. Bytes are what the sandboxes have written, with the layer.',
    ];
    return { title: 'Forks: one set-up for all siblings of a group', rows, targets, notes };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function prepareIn(sandbox: Sandbox, source: string): Promise<void> {
  await sandbox.upload(source, '/workspace/source');
  const { exitCode, output } = await sandbox.runShell(`(${setup})`, { timeoutMs });
  if (exitCode !== 0) throw new Error(`the set-up ended with ${exitCode}: ${output}`);
}

interface OpenedSibling {
  readonly sandbox: Sandbox;
  /** Measured from when it could start. */
  readonly startMs: number;
  /** The lease of its layer. */
  readonly layer?: AsyncDisposable & { readonly folder: string };
}

type Open = (subject: ForkSubject) => Promise<OpenedSibling>;

const openOwn: Open = async ({ driver, spec, source }) => {
  const beganAt = performance.now();
  const sandbox = await driver.open(spec);
  await prepareIn(sandbox, source);
  return { sandbox, startMs: performance.now() - beganAt };
};

/** A new cache for each measurement, so that each one includes the cost of its layer. */
function openForks({ driver, runDir }: ForkSubject): Open {
  const layers = new LayerCache({ driver, runDir, maxBytes: 2 ** 40, salt: String(performance.now()) });
  const { signal } = new AbortController();
  return async ({ spec, source }) => {
    const prepare = (sandbox: Sandbox) => prepareIn(sandbox, source);
    const layer = await layers.open({ spec, key: 'bench', prepare, signal, uncharged: (wait) => wait() });
    if (!layer) throw new Error('this machine cannot mount overlays');
    const beganAt = performance.now();
    const sandbox = await driver.open({ ...spec, layer: layer.folder });
    return { sandbox, startMs: performance.now() - beganAt, layer };
  };
}

/** As for a worker in the middle of a group: the warm pool knows the layer, and the next sandbox on it is ready. */
async function measureHandOver({ driver, spec, source, runDir }: ForkSubject): Promise<number[]> {
  const layers = new LayerCache({ driver, runDir, maxBytes: 2 ** 40, salt: 'hand-over' });
  const { signal } = new AbortController();
  const prepare = (sandbox: Sandbox) => prepareIn(sandbox, source);
  await using layer = await layers.open({ spec, key: 'bench', prepare, signal, uncharged: (wait) => wait() });
  if (!layer) throw new Error('this machine cannot mount overlays');
  return await measureWarm(holdLayers(driver, layers), { ...spec, layer: layer.folder });
}

async function measure(subject: ForkSubject, count: number, open: Open): Promise<ForkFigures> {
  const [beganAt, cpuBefore] = [performance.now(), readCpuMs()];
  const opened = await Promise.all(Array.from({ length: count }, () => open(subject)));
  const [wallMs, cpuMs] = [performance.now() - beganAt, readCpuMs() - cpuBefore];
  let bytes = 0;
  for (const { sandbox } of opened) {
    const seen = await sandbox.runShell(`${look}; df --output=used --block-size=1 /workspace | tail -n 1`, { timeoutMs });
    const [commits, value, used] = seen.output.trim().split('\n').map(Number);
    if (commits !== 3 || value !== 1) throw new Error(`a sibling has the wrong files: ${seen.output}`);
    bytes += used ?? Number.NaN;
  }
  const layer = opened[0]?.layer?.folder;
  if (layer !== undefined) bytes += await measureTree(layer);
  for (const { sandbox, layer: lease } of opened) {
    await sandbox[Symbol.asyncDispose]();
    await lease?.[Symbol.asyncDispose]();
  }
  return { wallMs, cpuMs, mib: bytes / 2 ** 20, startsMs: opened.map(({ startMs }) => startMs) };
}

function toRows(what: string, { own, forked, base }: { own: ForkFigures; forked: ForkFigures; base: number }): BenchRow[] {
  const pair = (name: string, unit: string, read: (from: ForkFigures) => readonly number[], at: number): BenchRow[] => [
    { what: `${what}: ${name}, each by itself`, unit, samples: read(own) },
    { what: `${what}: ${name}, forked`, unit, samples: read(forked), against: base + at },
  ];
  return [
    ...pair('all ready', 'ms', ({ wallMs }) => [wallMs], 0),
    ...pair('CPU', 'ms', ({ cpuMs }) => [cpuMs], 2),
    ...pair('bytes written', 'MiB', ({ mib }) => [mib], 4),
    ...pair('one start', 'ms', ({ startsMs }) => startsMs, 6),
  ];
}

/** Busy time of all cores, with a resolution of 10 ms. */
function readCpuMs(): number {
  const [user = 0, nice = 0, system = 0] = readFileSync('/proc/stat', 'utf8').split('\n')[0]?.split(/\s+/).slice(1).map(Number) ?? [];
  return (user + nice + system) * 10;
}

async function measureTree(path: string): Promise<number> {
  const { stdout } = await promisify(execFile)('du', ['--summarize', '--block-size=1', '--', path]);
  return Number(stdout.split('\t')[0]);
}
