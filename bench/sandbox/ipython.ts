// The IPython benchmark: a cell in a sandbox compared with ipykernel over TCP, cold starts and starts from the warm parent, and an executor
// call over a Unix socket compared with the same call over TCP.

import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { silentLog } from '@millrace/base/log';
import { openBubblewrapDriver, type SandboxDriver } from '@millrace/sandbox';
import { z } from 'zod';
import { type BenchReport, percentile } from '../report/report.ts';
import { sampleExecutorCalls } from './executor-link.ts';

const timeoutMs = 60_000;
const cells = 500;
const starts = 5;

export async function runIpythonBench(): Promise<BenchReport> {
  const folder = await mkdtemp(join(tmpdir(), 'bench-'));
  const driver = await openBubblewrapDriver({ runDir: folder, log: silentLog });
  const kernel = await measureKernel(folder);
  const ours = await measureCells(driver);
  const cold = await sampleColdStarts(driver, starts);
  const memory = await measureMemory(driver);
  const links = await sampleExecutorCalls(3000);
  await rm(folder, { recursive: true, force: true });
  const times = percentile(kernel.cells, 0.5) / percentile(ours.cells, 0.5);
  return {
    title: 'IPython cell, and the executor over Unix socket and TCP',
    rows: [
      { what: 'ipykernel over TCP, jupyter_client, no sandbox: print(i)', unit: 'ms', samples: kernel.cells },
      { what: 'Millrace, in a sandbox: print(i)', against: 0, unit: 'ms', samples: ours.cells },
      { what: 'ipykernel: started, first cell answered', unit: 'ms', samples: kernel.starts },
      { what: 'Millrace: first cell of a sandbox, Python and IPython started', against: 2, unit: 'ms', samples: cold },
      { what: 'Millrace: first cell of a new process, forked from the warm parent', against: 3, unit: 'ms', samples: ours.warm },
      { what: 'memory of a Python session (Pss, parent and process)', unit: 'MiB', samples: memory.session },
      { what: 'of it, what only the warm parent holds', unit: 'MiB', samples: memory.parent },
      { what: 'executor call (shell builtin), TCP on loopback, no sandbox', unit: 'ms', samples: links.tcp },
      { what: 'executor call (shell builtin), Unix socket, no sandbox', against: 7, unit: 'ms', samples: links.unix },
    ],
    targets: [{ claim: `a cell: ${times.toFixed(1)} times as fast as ipykernel at p50, at least 3`, kept: times >= 3 }],
    notes: ['A process forked from the warm parent is what a restart costs, or a cell that had to be killed.'],
  };
}

const baseline = z.object({ cells: z.array(z.number()), starts: z.array(z.number()) });

async function measureKernel(folder: string): Promise<z.infer<typeof baseline>> {
  const script = join(import.meta.dirname, 'ipykernel_baseline.py');
  const env = { PATH: '/usr/bin:/bin', HOME: folder, IPYTHONDIR: join(folder, 'ipython'), PYTHONDONTWRITEBYTECODE: '1' };
  const options = { env, cwd: folder, maxBuffer: 1 << 24 };
  const { stdout } = await promisify(execFile)('/usr/bin/python3', [script, String(cells), String(starts)], options);
  return baseline.parse(JSON.parse(stdout.trim().split('\n').at(-1) ?? ''));
}

async function measureCells(driver: SandboxDriver): Promise<{ cells: number[]; warm: number[] }> {
  await using sandbox = await driver.open({});
  const call = async (code: string, restart = false) => {
    const startMs = performance.now();
    const { end, output } = await sandbox.runPython(code, { timeoutMs, restart });
    if (end !== 'ok') throw new Error(`a cell ended with ${end}: ${output}`);
    return performance.now() - startMs;
  };
  for (let index = 0; index < 50; index += 1) await call('1');
  const result: { cells: number[]; warm: number[] } = { cells: [], warm: [] };
  for (let index = 0; index < cells; index += 1) result.cells.push(await call(`print(${index})`));
  for (let index = 0; index < 20; index += 1) result.warm.push(await call('1', true));
  return result;
}

/** From the first call to its reply, in a sandbox that is already open. */
async function sampleColdStarts(driver: SandboxDriver, count: number): Promise<number[]> {
  const samples: number[] = [];
  for (let index = 0; index < count; index += 1) {
    await using sandbox = await driver.open({});
    const startMs = performance.now();
    await sandbox.runPython('1', { timeoutMs });
    samples.push(performance.now() - startMs);
  }
  return samples;
}

const readPss = [
  'import os, re',
  'def read(pid, key): return sum(map(int, re.findall(rf"^{key}:\\s+(\\d+)", open(f"/proc/{pid}/smaps_rollup").read(), re.M))) / 1024',
  'print(read(os.getpid(), "Pss") + read(os.getppid(), "Pss"), read(os.getppid(), "Private_\\\\w+"))',
].join('\n');

async function measureMemory(driver: SandboxDriver): Promise<{ session: number[]; parent: number[] }> {
  await using sandbox = await driver.open({});
  const { output } = await sandbox.runPython(readPss, { timeoutMs });
  const [session = 0, parent = 0] = output.split(' ').map(Number);
  return { session: [session], parent: [parent] };
}
