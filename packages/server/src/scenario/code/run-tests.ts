// Runs a program on a list of tests in one sandbox, with one start of the runner. What the program does to its sandbox, or to the runner, ends
// the list early and is never an error of ours.

import { RolloutError, tryJson } from '@millrace/protocol';
import { z } from 'zod';
import type { ExecResult, Sandbox } from '../../sandbox/sandbox.ts';
import { runnerProgram } from './runner-program.ts';

export interface TestJob {
  /** A Python program, compiled once and forked for each test; otherwise `argv` is started for each test. */
  readonly source?: string;
  readonly argv?: readonly string[];
  /** Calls this function, or the method of `Solution`, with the test's input as its arguments. */
  readonly functionName?: string;
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
  readonly end: 'exit' | 'time' | 'output' | 'memory';
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
  /** What the program did to the runner or to its sandbox. */
  readonly brokenBy?: string;
}

/** A limit for the wall time, for programs that sleep: not so near to the limit of CPU time that a busy machine reaches it. */
export const wallMsOf = (timeMs: number): number => 3 * timeMs + 2000;
/** How long a program may wait for a core in addition. With hundreds of sandboxes that compute, it gets a hundredth of one. */
const maxWaitMsOf = (timeMs: number): number => 5 * wallMsOf(timeMs);

const overheadBytes = 4096;
const startMs = 20_000;
const judgedFaults: ReadonlySet<string> = new Set(['sandbox-limit', 'sandbox-killed', 'sandbox-refused']);

export interface RunLimits {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** Throws `evaluate-failed` if the runner could not start: then nothing of the agent has run. */
export async function runTests(sandbox: Sandbox, job: TestJob, tests: readonly TestInput[], limits: RunLimits): Promise<RunList> {
  const capBytes = tests.reduce((sum, test) => sum + 2 * test.outputBytes + overheadBytes, overheadBytes);
  const wallMs = tests.reduce((sum, { timeMs }) => sum + wallMsOf(timeMs) + maxWaitMsOf(timeMs), startMs);
  const timeoutMs = Math.max(1, Math.min(limits.timeoutMs, wallMs));
  const stdin = Buffer.concat([renderJob(job), ...tests.map(renderTest)]);
  let result: ExecResult;
  try {
    const options = { stdin, timeoutMs, capBytes, cwd: '/workspace', ...(limits.signal ? { signal: limits.signal } : {}) };
    result = await sandbox.exec(['python3', '-I', '-c', runnerProgram], options);
  } catch (error) {
    limits.signal?.throwIfAborted();
    if (error instanceof RolloutError && judgedFaults.has(error.code)) return { runs: [], brokenBy: error.message };
    throw error;
  }
  return toRunList(result, tests.length);
}

function renderFrame(head: Readonly<Record<string, unknown>>, body: Buffer): Buffer {
  const json = Buffer.from(JSON.stringify({ ...head, bytes: body.length }));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(json.length);
  return Buffer.concat([length, json, body]);
}

function renderJob({ source, argv, functionName, stopEarly }: TestJob): Buffer {
  const mode = source === undefined ? 'exec' : 'python';
  return renderFrame({ mode, argv, function: functionName, stop_early: stopEarly }, Buffer.from(source ?? ''));
}

function renderTest({ input, argv, timeMs, memoryMiB, outputBytes }: TestInput): Buffer {
  const limits = { time_ms: timeMs, wall_ms: wallMsOf(timeMs), max_wait_ms: maxWaitMsOf(timeMs), memory_mib: memoryMiB };
  return renderFrame({ argv, ...limits, output_bytes: outputBytes }, input);
}

const head = z.union([
  z.object({ ready: z.literal(true) }),
  z.object({ compile_error: z.string() }),
  z.object({
    end: z.enum(['exit', 'time', 'output', 'memory']),
    exit: z.int().nullable(),
    signal: z.int().nullable(),
    cpu_ms: z.number(),
    wall_ms: z.number(),
    out: z.int().min(0),
    result: z.int().min(0),
    err: z.int().min(0),
  }),
]);

function toRunList(result: ExecResult, count: number): RunList {
  const runs: TestRun[] = [];
  let [at, isReady, compileError]: [number, boolean, string | undefined] = [0, false, undefined];
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
      at += parsed.out + parsed.result + parsed.err;
    }
  }
  if (!isReady) throw new RolloutError('evaluate-failed', `the runner of the tests did not start: ${describe(result)}`);
  if (compileError !== undefined) return { runs: [], compileError };
  const isWhole = result.exitCode === 0 && runs.length <= count;
  return { runs: runs.slice(0, count), ...(isWhole ? {} : { brokenBy: `the runner of the tests ${describe(result)}` }) };
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
