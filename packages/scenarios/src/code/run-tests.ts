// Runs a program on a list of tests in one sandbox, with one start of the runner. What the program does to its sandbox, or to the runner, ends
// the list early and is never an error of ours. The counts of the kernel tell what the machine did to it.

import { definedOf, RolloutError, tryJson } from '@millrace/protocol';
import type { ExecResult, Sandbox } from '@millrace/sandbox';
import { z } from 'zod';
import { runnerProgram } from './runner-program.ts';

export interface TestJob {
  /** A Python program, compiled once and forked for each test; otherwise `argv` is started for each test. */
  readonly source?: string;
  readonly argv?: readonly string[];
  /** Calls this function, or the method of `Solution`, with the test's input as its arguments. */
  readonly functionName?: string;
  /** Limits memory in use instead of address space, with this much more for the runtime of the language. */
  readonly runtimeMiB?: number;
  /** Runs no further test after one that did not end with exit code 0. */
  readonly stopEarly: boolean;
}

export interface TestInput {
  readonly input: Buffer;
  /** Replaces the one of the job. */
  readonly argv?: readonly string[];
  readonly timeMs: number;
  readonly memoryMiB: number;
  readonly outputBytes: number;
}

export interface TestRun {
  readonly end: 'exit' | 'time' | 'output' | 'memory' | 'starved';
  readonly exitCode?: number;
  readonly signal?: number;
  readonly cpuMs: number;
  readonly wallMs: number;
  readonly stdout: Buffer;
  /** The JSON of what the function returned; empty if it did not return. */
  readonly result: Buffer;
  readonly stderr: string;
}

export interface RunList {
  /** In the order of the tests; fewer if the list ended early. */
  readonly runs: readonly TestRun[];
  readonly compileError?: string;
  /** Why the runner did not come to its end: something killed it, stopped it, or used up its sandbox. */
  readonly brokenBy?: string;
  /** The runner did not start, or started nothing; `killed`: it was killed before any program of the agent ran. */
  readonly unstarted?: 'killed' | 'broken';
  /** The runner was stopped for longer than all its tests may take: only a program of the sandbox can do that. */
  readonly isStopped?: boolean;
  /** Whether a process was killed because the sandbox reached its own limit of memory. */
  readonly isOutOfMemory: boolean;
  /** CPU time of the sandbox that is not in the runs: of processes that no process waited for. */
  readonly hiddenCpuMs: number;
}

/** The longest sleep of a program: not so near to the limit of CPU time that a program which reads and writes a lot reaches it. */
const sleepMsOf = (timeMs: number): number => 3 * timeMs + 2000;
/** A machine that takes longer gives too little for a verdict: with hundreds of sandboxes that compute, each gets a hundredth of a core. */
const wallMsOf = (timeMs: number): number => 50 * timeMs + 60_000;
/** The longest time of one test, of the program itself. */
export const ownMsOf = (timeMs: number): number => timeMs + sleepMsOf(timeMs);

const overheadBytes = 4096;
const startMs = 10_000;
const judgedFaults: ReadonlySet<string> = new Set(['sandbox-limit', 'sandbox-killed', 'sandbox-refused']);

export async function runTests(
  sandbox: Sandbox,
  job: TestJob,
  tests: readonly TestInput[],
  signal: AbortSignal | undefined,
): Promise<RunList> {
  const capBytes = tests.reduce((sum, test) => sum + 2 * test.outputBytes + overheadBytes, overheadBytes);
  const timeoutMs = tests.reduce((sum, { timeMs }) => sum + ownMsOf(timeMs), startMs);
  const stdin = Buffer.concat([renderJob(job), ...tests.map(renderTest)]);
  const before = sandbox.readUse();
  const used = () => {
    const use = sandbox.readUse();
    return { isOutOfMemory: use.ownOomKills > before.ownOomKills, cpuMs: use.cpuMs - before.cpuMs };
  };
  try {
    const options = { stdin, timeoutMs, capBytes, cwd: '/workspace', judgesKills: true, ...definedOf({ signal }) };
    const result = await sandbox.exec(['python3', '-I', '-c', runnerProgram], options);
    return toRunList(result, tests.length, used());
  } catch (error) {
    signal?.throwIfAborted();
    if (!(error instanceof RolloutError) || !judgedFaults.has(error.code)) throw error;
    return { runs: [], brokenBy: error.message, isOutOfMemory: error.code === 'sandbox-limit', hiddenCpuMs: 0 };
  }
}

function renderFrame(head: Readonly<Record<string, unknown>>, body: Buffer): Buffer {
  const json = Buffer.from(JSON.stringify({ ...head, bytes: body.length }));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(json.length);
  return Buffer.concat([length, json, body]);
}

function renderJob({ source, argv, functionName, runtimeMiB, stopEarly }: TestJob): Buffer {
  const mode = source === undefined ? 'exec' : 'python';
  return renderFrame({ mode, argv, function: functionName, runtime_mib: runtimeMiB, stop_early: stopEarly }, Buffer.from(source ?? ''));
}

function renderTest({ input, argv, timeMs, memoryMiB, outputBytes }: TestInput): Buffer {
  const limits = { time_ms: timeMs, sleep_ms: sleepMsOf(timeMs), wall_ms: wallMsOf(timeMs), memory_mib: memoryMiB };
  return renderFrame({ argv, ...limits, output_bytes: outputBytes }, input);
}

const head = z.union([
  z.object({ ready: z.literal(true) }),
  z.object({ compile_error: z.string() }),
  z.object({
    end: z.enum(['exit', 'time', 'output', 'memory', 'starved']),
    own_ms: z.number(),
    exit: z.int().nullable(),
    signal: z.int().nullable(),
    cpu_ms: z.number(),
    wall_ms: z.number(),
    out: z.int().min(0),
    result: z.int().min(0),
    err: z.int().min(0),
  }),
]);

/** `used`: what the kernel counted for the sandbox meanwhile. */
function toRunList(result: ExecResult, count: number, used: { readonly isOutOfMemory: boolean; readonly cpuMs: number }): RunList {
  const runs: TestRun[] = [];
  let [at, ownMs, isReady, compileError]: [number, number, boolean, string | undefined] = [0, 0, false, undefined];
  const { stdout } = result;
  while (at + 4 <= stdout.length) {
    const start = at + 4;
    const end = start + stdout.readUInt32BE(at);
    const parsed = end > stdout.length ? undefined : head.safeParse(tryJson(stdout.toString('utf8', start, end))).data;
    if (parsed === undefined) break;
    at = end;
    if ('ready' in parsed) isReady = true;
    else if ('compile_error' in parsed) compileError = parsed.compile_error;
    else {
      if (at + parsed.out + parsed.result + parsed.err > stdout.length) break;
      runs.push(toRun(parsed, stdout.subarray(at)));
      ownMs = parsed.own_ms;
      at += parsed.out + parsed.result + parsed.err;
    }
  }
  const { isOutOfMemory, cpuMs } = used;
  if (!isReady) {
    const unstarted = result.signal === 'SIGKILL' && !result.timedOut ? 'killed' : 'broken';
    return { runs: [], unstarted, brokenBy: describe(result), isOutOfMemory, hiddenCpuMs: 0 };
  }
  if (compileError !== undefined) return { runs: [], compileError, isOutOfMemory, hiddenCpuMs: 0 };
  const isWhole = result.exitCode === 0 && runs.length <= count;
  const hiddenCpuMs = cpuMs - ownMs - runs.reduce((sum, run) => sum + run.cpuMs, 0);
  const broken = isWhole ? {} : { brokenBy: `the runner of the tests ${describe(result)}`, isStopped: result.timedOut };
  return { runs: runs.slice(0, count), ...broken, isOutOfMemory, hiddenCpuMs };
}

type Head = z.infer<typeof head>;

function toRun(run: Extract<Head, { end: string }>, bytes: Buffer): TestRun {
  const [result, err] = [run.out, run.out + run.result];
  return {
    end: run.end,
    ...(run.exit === null ? {} : { exitCode: run.exit }),
    ...(run.signal === null ? {} : { signal: run.signal }),
    cpuMs: run.cpu_ms,
    wallMs: run.wall_ms,
    stdout: bytes.subarray(0, result),
    result: bytes.subarray(result, err),
    stderr: bytes.subarray(err, err + run.err).toString('utf8'),
  };
}

function describe({ timedOut, exitCode, signal, stderr }: ExecResult): string {
  if (timedOut) return 'timed out';
  const how = exitCode === undefined ? `was killed by ${signal}` : `ended with exit code ${exitCode}`;
  return `${how} ${stderr.subarray(-1000).toString('utf8').trim()}`.trim();
}
