// What a whole rollout costs the machine: `shell` with three turns and a check, against a fake backend, compared with bubblewrap and bash
// running the same commands in two sandboxes. CPU time is read for each process, so neighbours on the machine are not counted.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { SubmissionInput } from '@millrace/protocol';
import { openFakeBackendProcess, qwen3Folder, TestService } from '@millrace/testkit';
import { readParent, readSpentCpu, readWorkerCpu } from '../report/processes.ts';
import { type BenchReport, type BenchRow, percentile } from '../report/report.ts';

const turns = 3;
const rounds = 5;
const rolloutsPerRound = 60;
const warmUpRounds = 3;
const backgroundMs = 1500;
const pipeline = { runSlots: 12, readySlots: 6, initSlots: 4, handBackMs: 0 };
const targets = { cpuMs: 60, forks: 10 };

export async function runRolloutCostBench(): Promise<BenchReport> {
  await using backend = await openFakeBackendProcess({ policy: 'fixed', turns, tokensPerTurn: 32, latencyMs: 20 });
  await using service = await TestService.open({ workers: 2, tokenizer: qwen3Folder(), pipeline });
  await service.client.backends.join({ url: backend.url });
  const { workers } = await service.client.status();
  const pids = workers.filter(({ alive }) => alive).map(({ pid }) => pid);
  const run = () => runRollouts(service);
  for (let round = 0; round < warmUpRounds; round += 1) await run();
  const own: RoundCost[] = [];
  const bare: RoundCost[] = [];
  for (let round = 0; round < rounds; round += 1) {
    bare.push(await measure({ workers: [process.pid] }, runBare));
    own.push(await measure({ workers: pids, server: service.pid }, run));
  }
  return toReport(bare, own);
}

/** Per rollout. */
interface RoundCost {
  readonly workersMs: number;
  readonly serverMs: number;
  readonly sandboxesMs: number;
  readonly threadsMs: number;
  /** The part of all of these that was spent in the kernel. */
  readonly kernelMs: number;
  readonly forks: number;
  readonly switches: number;
  readonly perSecond: number;
}

interface CostedProcesses {
  /** The processes that start sandboxes and wait for their end. */
  readonly workers: readonly number[];
  readonly server?: number;
}

/** What is only counted for the whole machine is corrected by what it counted per second before and after. */
async function measure({ workers, server }: CostedProcesses, run: () => Promise<void>): Promise<RoundCost> {
  const read = () => ({ workers: workers.map(readWorkerCpu), server: server === undefined ? none : readSpentCpu(server) });
  const before = await measureBackground();
  const [startMs, first, start] = [performance.now(), read(), readMachine()];
  await run();
  const [end, last, seconds] = [readMachine(), read(), (performance.now() - startMs) / 1000];
  const after = await measureBackground();
  const spent = (field: keyof typeof none) =>
    last.workers.reduce((sum, cpu, index) => sum + cpu[field] - (first.workers[index]?.[field] ?? 0), 0);
  const machine = (field: keyof MachineCounts) => difference(field, start, end) - ((before[field] + after[field]) / 2) * seconds;
  const threadsMs = Math.max(0, machine('threadsMs'));
  const kernelMs = spent('kernelMs') + last.server.kernelMs - first.server.kernelMs + threadsMs;
  const serverMs = last.server.ownMs - first.server.ownMs;
  const all = { workersMs: spent('ownMs'), serverMs, sandboxesMs: spent('childrenMs'), threadsMs, kernelMs };
  const perRollout = (value: number) => value / rolloutsPerRound;
  return {
    workersMs: perRollout(all.workersMs),
    serverMs: perRollout(all.serverMs),
    sandboxesMs: perRollout(all.sandboxesMs),
    threadsMs: perRollout(all.threadsMs),
    kernelMs: perRollout(all.kernelMs),
    forks: perRollout(machine('forks')),
    switches: perRollout(machine('switches')),
    perSecond: rolloutsPerRound / seconds,
  };
}

const none = { ownMs: 0, childrenMs: 0, kernelMs: 0 };

interface MachineCounts {
  /** The last number that a process or thread got, in this PID namespace or one below it. */
  readonly forks: number;
  readonly switches: number;
  /** CPU time of the kernel's own threads, which remove namespaces and mounts. */
  readonly threadsMs: number;
}

function readMachine(): MachineCounts {
  const text = readFileSync('/proc/stat', 'utf8');
  const threads = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return {
    forks: Number(readFileSync('/proc/sys/kernel/ns_last_pid', 'utf8')),
    switches: Number(/^ctxt (\d+)/m.exec(text)?.[1]),
    threadsMs: threads.reduce((sum, pid) => sum + readThreadMs(Number(pid)), 0),
  };
}

/** The numbers of processes start again after the largest. */
function difference(field: keyof MachineCounts, start: MachineCounts, end: MachineCounts): number {
  const found = end[field] - start[field];
  return field === 'forks' && found < 0 ? found + Number(readFileSync('/proc/sys/kernel/pid_max', 'utf8')) : found;
}

const kernelThreads = 2;

function readThreadMs(pid: number): number {
  try {
    return readParent(pid) === kernelThreads ? readSpentCpu(pid).ownMs : 0;
  } catch {
    return 0; // it has ended
  }
}

/** Per second. */
async function measureBackground(): Promise<MachineCounts> {
  const [startMs, start] = [performance.now(), readMachine()];
  await pause(backgroundMs);
  const [end, seconds] = [readMachine(), (performance.now() - startMs) / 1000];
  const rate = (field: keyof MachineCounts) => difference(field, start, end) / seconds;
  return { forks: rate('forks'), switches: rate('switches'), threadsMs: rate('threadsMs') };
}

const submission = { scenario: 'shell', task: { instruction: 'Go.', check: 'true' } } as const satisfies SubmissionInput;

async function runRollouts({ client }: TestService): Promise<void> {
  const run = await client.run(Array.from({ length: rolloutsPerRound }, () => submission));
  for await (const view of run)
    if (view.state !== 'done') throw new Error(`a rollout of the benchmark ended as ${JSON.stringify(view.failure)}`);
}

const bareArguments = [
  ...['--unshare-all', '--unshare-user', '--uid', '1000', '--gid', '1000', '--die-with-parent', '--as-pid-1', '--ro-bind', '/usr', '/usr'],
  ...[
    '--symlink',
    'usr/bin',
    '/bin',
    '--symlink',
    'usr/lib',
    '/lib',
    '--symlink',
    'usr/lib64',
    '/lib64',
    '--proc',
    '/proc',
    '--dev',
    '/dev',
  ],
  ...['--tmpfs', '/workspace', '--chdir', '/workspace', '/bin/bash', '--norc'],
];

/** The agent's commands in one sandbox, and the check in another. */
async function runBare(): Promise<void> {
  for (let rollout = 0; rollout < rolloutsPerRound; rollout += 1) {
    await runScript('true\n'.repeat(turns - 1));
    await runScript('true\n');
  }
}

async function runScript(script: string): Promise<void> {
  const child = spawn('bwrap', bareArguments, { stdio: ['pipe', 'ignore', 'inherit'] });
  child.stdin.end(script);
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`the bare sandbox ended with ${code}`);
}

type CostField = keyof RoundCost;

const parts: readonly (readonly [what: string, field: CostField])[] = [
  ['of it, workers', 'workersMs'],
  ['of it, the server', 'serverMs'],
  ['of it, sandboxes', 'sandboxesMs'],
  ['of it, threads of the kernel', 'threadsMs'],
  ['the part of all four that is in the kernel', 'kernelMs'],
];

function toReport(bare: readonly RoundCost[], own: readonly RoundCost[]): BenchReport {
  const cpuOf = ({ workersMs, serverMs, sandboxesMs, threadsMs }: RoundCost) => workersMs + serverMs + sandboxesMs + threadsMs;
  const all = (costs: readonly RoundCost[], field: CostField) => costs.map((cost) => cost[field]);
  const [cpu, forks, unit] = [own.map(cpuOf), all(own, 'forks'), 'ms CPU'];
  const [cpuMs, forked] = [percentile(cpu, 0.5), percentile(forks, 0.5)];
  const rows: BenchRow[] = [
    { what: 'bwrap and bash, two sandboxes, the same commands', unit, samples: bare.map(cpuOf) },
    { what: 'bwrap and bash: forks', unit: 'forks', samples: all(bare, 'forks') },
    { what: 'a rollout', unit, samples: cpu, against: 0 },
    ...parts.map(([what, field]) => ({ what, unit, samples: all(own, field) })),
    { what: 'a rollout: forks', unit: 'forks', samples: forks, against: 1 },
    { what: 'a rollout: context switches', unit: 'switches', samples: all(own, 'switches') },
    { what: 'rollouts per second', unit: 'rollouts/s', samples: all(own, 'perSecond'), larger: 'better' },
  ];
  return {
    title: `What a rollout costs: \`shell\`, ${turns} turns and a check`,
    rows,
    targets: [
      { claim: `a rollout takes ${cpuMs.toFixed(1)} ms of CPU time, at most ${targets.cpuMs}`, kept: cpuMs <= targets.cpuMs },
      { claim: `a rollout forks ${forked.toFixed(1)} times, at most ${targets.forks}`, kept: Math.round(forked) <= targets.forks },
    ],
    notes: [
      `${rounds} rounds of ${rolloutsPerRound} rollouts. Forks, with threads, are counted for the PID namespace, context switches and threads of the kernel for the machine, less what is counted per second before and after. On a machine that is not quiet, forks are right in a namespace of their own: \`unshare --pid --fork --mount-proc\`, in which threads of the kernel are not seen.`,
    ],
  };
}
