// Grades a program on the tests of a task. The expected outputs stay in this process: the sandbox in which the program runs gets inputs only,
// and one at a time. The outputs are compared here, or by the task's checker in a sandbox of its own.

import type { Sandbox } from '@millrace/sandbox';
import { gradeInThread } from '../verifier/graders.ts';
import { type CheckedOutput, Checker } from './checker.ts';
import type { CodeTask } from './code-task.ts';
import { CompileError, compileSecondsMost, openCompiled } from './compile.ts';
import { languages, renderRun } from './languages.ts';
import { type ComparedRun, type CompareRule, compareRuns } from './output/compare-runs.ts';
import { ownMsOf, type RunList, type TestInput, type TestJob, type TestRun } from './run-tests.ts';
import { TestBench } from './test-bench.ts';

export type TestVerdict =
  | 'passed'
  | 'wrong_output'
  | 'runtime_error'
  | 'time_limit'
  | 'memory_limit'
  | 'output_limit'
  | 'compile_error'
  /** The program attacked the runner or used up its sandbox. */
  | 'broke_sandbox'
  | 'not_run';

export interface GradeOptions {
  readonly task: CodeTask;
  readonly program: string;
  openSandbox(): Promise<Sandbox>;
  readonly signal?: AbortSignal;
}

export interface TestGrade {
  readonly verdict: TestVerdict;
  /** Between 0 and 1; a checker may give a part. */
  readonly score: number;
  readonly cpuMs: number;
  readonly stderr: string;
}

/** For everything but compiling and testing. */
const spareS = 120;
/** The most that the runner gets at once: tests, and the bytes of all of them. */
const mostTests = 256;
const maxInputBytes = 16 << 20;
const maxOutputBytes = 24 << 20;
/** An output may be longer than the expected one only by this much and the same again. */
const spareBytes = 64 << 10;

/** The longest time that judging a program may take by the limits of its tests. */
export function gradeSecondsOf({ tests, test_code, time_limit_s, checker }: CodeTask): number {
  const each = ownMsOf(time_limit_s * 1000) + (checker ? 2 * ownMsOf(checker.time_limit_s * 1000) : 0);
  return 2 * compileSecondsMost + ((tests.length + 2 * (test_code?.cases.length ?? 0)) * each) / 1000 + spareS;
}

/** One grade per test. */
export async function gradeProgram(options: GradeOptions): Promise<readonly TestGrade[]> {
  try {
    return await gradeTests(options);
  } catch (error) {
    if (error instanceof CompileError) return options.task.tests.map(() => toGrade('compile_error', error.message));
    throw error;
  }
}

async function gradeTests(options: GradeOptions): Promise<readonly TestGrade[]> {
  const { task, program, signal } = options;
  const bench = await TestBench.open(
    () => openCompiled({ language: task.language, source: program, openSandbox: options.openSandbox, signal }),
    signal,
  );
  const checker = task.checker && (await Checker.open(options.openSandbox, task.checker, signal));
  const language = languages[task.language];
  const stopEarly = task.credit === 'all';
  const job: TestJob = {
    ...(language.compile ? { argv: renderRun(language, task.memory_limit_mib) } : { source: program }),
    ...(language.runtimeMiB === undefined ? {} : { runtimeMiB: language.runtimeMiB }),
    ...(task.function_name === undefined ? {} : { functionName: task.function_name }),
    stopEarly,
  };
  const grades: TestGrade[] = [];
  for (const chunk of toChunks(task)) {
    const inputs = chunk.map((test) => toInput(task, test));
    const list = await bench.run(job, inputs);
    const scores = checker ? await checkOutputs(checker, { chunk, list }) : await compareOutputs(task, { chunk, list }, signal);
    grades.push(...chunk.slice(0, gradedCount(list, chunk.length)).map((_, at) => gradeTest({ task, list, at, checked: scores[at] })));
    if ((stopEarly && grades.some(({ score }) => score < 1)) || list.compileError !== undefined || list.brokenBy !== undefined) break;
  }
  return task.tests.map((_, at) => grades[at] ?? toGrade('not_run'));
}

type CodeTest = CodeTask['tests'][number];

const toGrade = (verdict: TestVerdict, stderr = ''): TestGrade => ({ verdict, score: 0, cpuMs: 0, stderr });

/** The tests that ran, and the one that ended the list. */
const gradedCount = ({ runs, brokenBy, compileError }: RunList, count: number): number =>
  Math.min(count, runs.length + (brokenBy === undefined && compileError === undefined ? 0 : 1));

/** Early stopping wants few tests at a time at first; a full list wants as many as fit, since each chunk starts a runner. */
function* toChunks(task: CodeTask): Generator<readonly CodeTest[]> {
  let [size, at] = [task.credit === 'all' ? 1 : mostTests, 0];
  while (at < task.tests.length) {
    const chunk: CodeTest[] = [];
    let [inputBytes, outputBytes] = [0, 0];
    for (const test of task.tests.slice(at, at + size)) {
      inputBytes += test.input.length;
      outputBytes += 2 * outputBytesOf(task, test);
      if (chunk.length > 0 && (inputBytes > maxInputBytes || outputBytes > maxOutputBytes)) break;
      chunk.push(test);
    }
    yield chunk;
    at += chunk.length;
    size = Math.min(mostTests, size * 4);
  }
}

function outputBytesOf(task: CodeTask, { output, alternatives = [] }: CodeTest): number {
  const longest = Math.max(...[output, ...alternatives].map((one) => Buffer.byteLength(one)));
  return Math.min(maxOutputBytes / 2, 2 * longest + (task.checker ? 1 << 20 : spareBytes));
}

function toInput(task: CodeTask, test: CodeTest): TestInput {
  return {
    input: Buffer.from(test.input),
    timeMs: task.time_limit_s * 1000,
    memoryMiB: task.memory_limit_mib,
    outputBytes: outputBytesOf(task, test),
  };
}

interface RanChunk {
  readonly chunk: readonly CodeTest[];
  readonly list: RunList;
}

/** The runs that ended well, with their tests. */
const endedOf = ({ chunk, list }: RanChunk) =>
  list.runs.flatMap((run, at) => {
    const test = chunk[at];
    return test && run.end === 'exit' && run.exitCode === 0 ? [{ run, test }] : [];
  });

async function checkOutputs(checker: Checker, ran: RanChunk): Promise<(number | undefined)[]> {
  const ended = endedOf(ran);
  const outputs = ended.map(({ run, test }): CheckedOutput => ({ input: test.input, output: run.stdout, answer: test.output }));
  const scores = outputs.length === 0 ? [] : await checker.score(outputs);
  return ran.list.runs.map((run) => scores[ended.findIndex((one) => one.run === run)]);
}

/** For linear work on the largest outputs of a chunk. */
const compareCpuMs = 15_000;

/** Outputs that exhaust the comparison are wrong, unless the expected ones do so too. */
async function compareOutputs(task: CodeTask, ran: RanChunk, signal: AbortSignal | undefined): Promise<(number | undefined)[]> {
  const ended = endedOf(ran);
  if (ended.length === 0) return [];
  const isFunction = task.function_name !== undefined;
  const rule: CompareRule = { by: isFunction ? 'json' : task.compare, tolerance: task.float_tolerance };
  const runs = ended.map(({ run, test }): ComparedRun => {
    const given = new Uint8Array(isFunction ? run.result : run.stdout); // a copy, which moves to the thread
    return { given, expected: [test.output, ...(test.alternatives ?? [])] };
  });
  const toGold = ({ expected }: ComparedRun): ComparedRun => ({ given: Buffer.from(`${expected[0] ?? ''}\n`), expected });
  const controls = () => [[runs.map(toGold), rule] as const];
  const transfer = runs.map(({ given }) => given);
  const scores = await gradeInThread(compareRuns, [runs, rule] as const, { controls, cpuMs: compareCpuMs, transfer, signal });
  return ran.list.runs.map((run) => scores?.[ended.findIndex((one) => one.run === run)] ?? 0);
}

interface Graded {
  readonly task: CodeTask;
  readonly list: RunList;
  readonly at: number;
  readonly checked: number | undefined;
}

function gradeTest({ task, list, at, checked }: Graded): TestGrade {
  const run = list.runs[at];
  if (list.compileError !== undefined) return toGrade('compile_error', list.compileError);
  if (run === undefined) return toGrade('broke_sandbox', list.brokenBy);
  const failure = failureOf(run, { task, isOutOfMemory: list.isOutOfMemory });
  const rest = { cpuMs: run.cpuMs, stderr: run.stderr };
  if (failure !== undefined) return { verdict: failure, score: 0, ...rest };
  const score = checked ?? 0;
  return { verdict: score === 1 ? 'passed' : 'wrong_output', score, ...rest };
}

interface MeasuredTest {
  readonly task: CodeTask;
  readonly isOutOfMemory: boolean;
}

export function failureOf({ end, exitCode, stderr, result }: TestRun, { task, isOutOfMemory }: MeasuredTest): TestVerdict | undefined {
  if (end === 'time') return 'time_limit';
  if (end === 'output') return 'output_limit';
  if (
    end === 'memory' ||
    (exitCode === undefined && isOutOfMemory) ||
    (exitCode !== 0 && /MemoryError|bad_alloc|heap out of memory/.test(stderr))
  )
    return 'memory_limit';
  if (exitCode !== 0) return 'runtime_error';
  return task.function_name !== undefined && result.length === 0 ? 'runtime_error' : undefined;
}
