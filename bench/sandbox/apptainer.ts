// The Apptainer benchmark: a tool call through socket and PTY compared with tmux and with one `apptainer exec instance://` per call, the
// cold start compared with a bare `apptainer exec` of the same image, and many sandboxes at once.

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { sleep } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { openApptainerDriver, probeApptainer, type SandboxDriver } from '@millrace/sandbox';
import { makeTinyImage } from '@millrace/testkit';
import { type BenchReport, type BenchRow, percentile } from '../report/report.ts';
import { measureTmux, sample } from './shell.ts';

const run = promisify(execFile);
const timeoutMs = 60_000;
const atOnce = 64;
const startCount = 30;
const restMs = 100;
const isolation = ['--containall', '--cleanenv', '--no-home', '--no-privs', '--net', '--network', 'none', '--no-mount', 'sys'];

export async function runApptainerBench(): Promise<BenchReport> {
  const probe = await probeApptainer();
  if (!probe.ok) throw new Error(`${probe.reason}; try: ${probe.remedy}`);
  const folder = await mkdtemp(join(tmpdir(), 'bench-'));
  const image = join(folder, 'image');
  await makeTinyImage(image);
  const driver = await openApptainerDriver({ runDir: join(folder, 'run'), log: silentLog });
  try {
    const calls = await measureCalls(driver, image);
    const instance = await measureInstance(probe.path, image);
    const tmux = await measureTmux({ pollMs: 10, clearMs: 0, count: 100 });
    const file = join(folder, 'image.sif');
    await run(probe.path, ['--silent', 'build', file, image]);
    const starts = [
      { kind: 'directory', ...(await measureStarts(probe.path, driver, image)) },
      { kind: 'SIF file', ...(await measureStarts(probe.path, driver, file)) },
    ];
    const many = await measureMany(driver, image);
    const left = (await readdir(join(folder, 'run'))).filter((name) => name.startsWith('sb-')).length;
    return toReport({ calls, instance, tmux: tmux.quick, starts, many, left });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function measureCalls(driver: SandboxDriver, image: string): Promise<number[]> {
  await using sandbox = await driver.open({ image });
  const call = () => sandbox.runShell(':', { timeoutMs });
  await sample(500, call); // warm up: a worker is warm after its first seconds
  return await sample(2000, call);
}

/** The way of a driver without an executor: one `apptainer exec` into a running instance for each call. */
async function measureInstance(apptainer: string, image: string): Promise<number[]> {
  const name = `millrace-bench-${process.pid}`;
  const actions = join(image, '.singularity.d/actions');
  await mkdir(actions, { recursive: true });
  await writeFile(join(actions, 'start'), '#!/bin/sh\nexit 0\n', { mode: 0o755 });
  await run(apptainer, ['--silent', 'instance', 'start', ...isolation, image, name]);
  try {
    return await sample(30, () => run(apptainer, ['--silent', 'exec', '--no-privs', `instance://${name}`, 'bash', '-c', ':']));
  } finally {
    await run(apptainer, ['--silent', 'instance', 'stop', name]);
  }
}

interface Starts {
  readonly bare: number[];
  readonly open: number[];
  readonly first: number[];
}

/** Alternates between both, so that they see the same load, and pauses so that the kernel has cleaned up after the one before. */
async function measureStarts(apptainer: string, driver: SandboxDriver, image: string): Promise<Starts> {
  const samples: Starts = { bare: [], open: [], first: [] };
  for (let index = 0; index < startCount; index += 1) {
    const overlay = await mkdtemp(join(dirname(image), 'overlay-'));
    const bare = () => run(apptainer, ['--silent', 'exec', ...isolation, '--no-init', '--overlay', overlay, image, 'true']);
    await sleep(restMs);
    samples.bare.push(...(await sample(1, bare)));
    await sleep(restMs);
    const startMs = performance.now();
    await using sandbox = await driver.open({ image });
    samples.open.push(performance.now() - startMs);
    await sandbox.runShell(':', { timeoutMs });
    samples.first.push(performance.now() - startMs);
  }
  return samples;
}

/** The time from the common start to the first reply of each sandbox. */
async function measureMany(driver: SandboxDriver, image: string): Promise<number[]> {
  const startMs = performance.now();
  const opened = await Promise.all(
    Array.from({ length: atOnce }, async () => {
      const sandbox = await driver.open({ image });
      await sandbox.runShell(':', { timeoutMs });
      return { sandbox, ms: performance.now() - startMs };
    }),
  );
  await Promise.all(opened.map(({ sandbox }) => sandbox[Symbol.asyncDispose]()));
  return opened.map(({ ms }) => ms);
}

interface ApptainerFigures {
  readonly calls: number[];
  readonly instance: number[];
  readonly tmux: number[];
  readonly starts: readonly (Starts & { readonly kind: string })[];
  readonly many: number[];
  readonly left: number;
}

function toReport({ calls, instance, tmux, starts, many, left }: ApptainerFigures): BenchReport {
  const [p50, p99] = [percentile(calls, 0.5), percentile(calls, 0.99)];
  const rows: BenchRow[] = [
    { what: 'tmux, poll 10 ms: builtin', unit: 'ms', samples: tmux },
    { what: 'apptainer exec instance:// per call: builtin', unit: 'ms', samples: instance },
    { what: 'Millrace: builtin, against apptainer exec instance://', against: 1, unit: 'ms', samples: calls },
  ];
  const cold: NonNullable<BenchReport['targets']>[number][] = [];
  for (const { kind, bare, open, first } of starts) {
    const against = rows.push({ what: `apptainer exec true of a ${kind}, same isolation, no executor`, unit: 'ms', samples: bare }) - 1;
    rows.push({ what: `sandbox of a ${kind} opened, executor ready, against the bare exec`, against, unit: 'ms', samples: open });
    rows.push({ what: `sandbox of a ${kind} opened, first command answered`, against, unit: 'ms', samples: first });
    const times = percentile(open, 0.5) / percentile(bare, 0.5);
    cold.push({ claim: `cold start of a ${kind}: ${times.toFixed(2)} times a bare apptainer exec, at most 1.5`, kept: times <= 1.5 });
  }
  rows.push({ what: `${atOnce} sandboxes opened at once, each to its first answer`, unit: 'ms', samples: many });
  return {
    title: 'Shell tool call and sandbox start (Apptainer)',
    rows,
    targets: [
      { claim: `builtin: p50 ${p50.toFixed(3)} < 0.5 ms and p99 ${p99.toFixed(3)} < 5 ms`, kept: p50 < 0.5 && p99 < 5 },
      ...cold,
      { claim: `${many.length} of ${atOnce} at once answered, ${left} left behind`, kept: many.length === atOnce && left === 0 },
    ],
    notes: [
      'What a cold start takes beyond the bare exec is the mounts of a disk with a size. The bare exec ' +
        'also ends and cleans up, which for a SIF file takes longer.',
    ],
  };
}
