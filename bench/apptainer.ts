// The Apptainer benchmark: a tool call through socket and PTY against tmux and against `apptainer exec instance://` per call, the cold
// start against a bare `apptainer exec` of the same image, and many sandboxes at once.

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openApptainerDriver, probeApptainer, type SandboxDriver } from '@millrace/server';
import { makeTinyImage } from '@millrace/testkit';
import { type BenchReport, percentile, renderReport } from './report.ts';
import { measureTmux, sample } from './shell.ts';

const run = promisify(execFile);
const timeoutMs = 60_000;
const atOnce = 64;
const isolation = ['--containall', '--cleanenv', '--no-home', '--no-privs', '--net', '--network', 'none', '--no-mount', 'sys'];

export async function runApptainerBench(): Promise<BenchReport> {
  const probe = await probeApptainer();
  if (!probe.ok) throw new Error(`${probe.reason}; try: ${probe.remedy}`);
  const folder = await mkdtemp(join(tmpdir(), 'bench-'));
  const image = join(folder, 'image');
  await makeTinyImage(image);
  const driver = await openApptainerDriver({ runDir: join(folder, 'run') });
  try {
    const calls = await measureCalls(driver, image);
    const instance = await measureInstance(probe.path, image);
    const tmux = await measureTmux({ pollMs: 10, clearMs: 0, count: 100 });
    const starts = await measureStarts(probe.path, { driver, image, folder, count: 30 });
    const many = await measureMany(driver, image);
    const left = (await readdir(join(folder, 'run'))).filter((name) => name.startsWith('sb-')).length;
    return toReport({ calls, instance, tmux: tmux.quick, ...starts, many, left });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function measureCalls(driver: SandboxDriver, image: string): Promise<number[]> {
  await using sandbox = await driver.open({ image });
  const call = () => sandbox.runShell(':', { timeoutMs });
  await sample(500, call); // a worker is warm after its first seconds
  return await sample(2000, call);
}

/** What a driver without an executor does: one `apptainer exec` into a running instance for each call. */
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

interface StartOptions {
  readonly driver: SandboxDriver;
  readonly image: string;
  readonly folder: string;
  readonly count: number;
}

/** In turns, so that both meet the same moments of the machine. */
async function measureStarts(apptainer: string, { driver, image, folder, count }: StartOptions) {
  const samples: { bare: number[]; node: number[]; open: number[]; first: number[] } = { bare: [], node: [], open: [], first: [] };
  for (let index = 0; index < count; index += 1) {
    const overlay = join(folder, `overlay-${index}`);
    await mkdir(overlay);
    const bare = () => run(apptainer, ['--silent', 'exec', ...isolation, '--no-init', '--overlay', overlay, image, 'true']);
    samples.bare.push(...(await sample(1, bare)));
    samples.node.push(...(await sample(1, () => run(process.execPath, ['-e', '0']))));
    const startMs = performance.now();
    await using sandbox = await driver.open({ image });
    samples.open.push(performance.now() - startMs);
    await sandbox.runShell(':', { timeoutMs });
    samples.first.push(performance.now() - startMs);
  }
  return samples;
}

/** Each answers once; the time is from the common start to its first answer. */
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

interface Measured {
  readonly calls: number[];
  readonly instance: number[];
  readonly tmux: number[];
  readonly bare: number[];
  readonly node: number[];
  readonly open: number[];
  readonly first: number[];
  readonly many: number[];
  readonly left: number;
}

function toReport({ calls, instance, tmux, bare, node, open, first, many, left }: Measured): BenchReport {
  const [p50, p99] = [percentile(calls, 0.5), percentile(calls, 0.99)];
  const times = percentile(open, 0.5) / percentile(bare, 0.5);
  return {
    title: 'Shell tool call and sandbox start (Apptainer)',
    rows: [
      { what: 'tmux, poll 10 ms: builtin', unit: 'ms', samples: tmux },
      { what: 'apptainer exec instance:// per call: builtin', unit: 'ms', samples: instance },
      { what: 'Millrace: builtin, against apptainer exec instance://', against: 1, unit: 'ms', samples: calls },
      { what: 'apptainer exec true, same image and isolation, no executor', unit: 'ms', samples: bare },
      { what: 'Node.js started and ended, no sandbox', unit: 'ms', samples: node },
      { what: 'sandbox opened, executor ready, against the bare exec', against: 3, unit: 'ms', samples: open },
      { what: 'sandbox opened, first command answered', unit: 'ms', samples: first },
      { what: `${atOnce} sandboxes opened at once, each to its first answer`, unit: 'ms', samples: many },
    ],
    targets: [
      { claim: `builtin: p50 ${p50.toFixed(3)} < 0.5 ms and p99 ${p99.toFixed(3)} < 5 ms`, kept: p50 < 0.5 && p99 < 5 },
      { claim: `cold start: ${times.toFixed(2)} times a bare apptainer exec, at most 1.5`, kept: times <= 1.5 },
      { claim: `${many.length} of ${atOnce} at once answered, ${left} left behind`, kept: many.length === atOnce && left === 0 },
    ],
    notes: ['What a cold start takes beyond the bare exec is the start of Node.js and of the few modules of the executor.'],
  };
}

if (import.meta.main) console.log(renderReport(await runApptainerBench()));
