// Grades a program by test code with assertions. The test code and the program never share an interpreter or a sandbox: the tests say which
// calls they want, the program makes them in its own sandbox, and the tests are run again with the results as data. What the program
// prints, how it exits and what it does to its interpreter is no evidence; only the values that it returns are.

import { RolloutError, tryJson } from '@millrace/protocol';
import { z } from 'zod';
import { toVerifierFault } from '../verifier/verifier-fault.ts';
import { callFunction, callProgram } from './assertions/call-program.ts';
import { testFunction, testProgram } from './assertions/test-program.ts';
import type { CodeTask } from './code-task.ts';
import { failureOf, type GradeOptions, type TestGrade, type TestVerdict } from './grade.ts';
import type { RunList, TestRun } from './run-tests.ts';
import { TestBench } from './test-bench.ts';

/** How often a test may want calls that depend on results of earlier ones. */
const maxRounds = 100;
/** Cases that are run at once, and the bytes of all their results. */
const mostCases = 16;
const allOutputBytes = 12 << 20;
const maxOutputBytes = 4 << 20;
/** What the test code itself may take in addition to the program's time, and its memory. */
const spareMs = 2000;
const testMemoryMiB = 1024;

type AssertionTask = CodeTask & { readonly test_code: NonNullable<CodeTask['test_code']> };

interface Bench {
  readonly task: AssertionTask;
  readonly program: string;
  readonly programs: TestBench;
  readonly tests: TestBench;
}

/** A case on its way to a grade: the calls that it wanted so far, each list with its results. */
interface OpenCase {
  readonly code: string;
  readonly known: string[];
  cpuMs: number;
  grade?: TestGrade;
}

/** One grade per case. Throws `evaluate-failed` if the test code is at fault: it fails before anything of the program has run. */
export async function gradeAssertions({
  task,
  ...options
}: GradeOptions & { readonly task: AssertionTask }): Promise<readonly TestGrade[]> {
  const { openSandbox, signal } = options;
  const [programs, tests] = [await TestBench.open(openSandbox, signal), await TestBench.open(openSandbox, signal)];
  const bench: Bench = { task, program: `${options.program}\n${callProgram}`, programs, tests };
  const { cases } = task.test_code;
  const grades: TestGrade[] = [];
  while (grades.length < cases.length) {
    grades.push(...(await gradeCases(bench, cases.slice(grades.length, grades.length + mostCases))));
    if (task.credit === 'all' && grades.some(({ score }) => score < 1)) break;
  }
  return cases.map((_, at) => grades[at] ?? toGrade('not_run'));
}

const toGrade = (verdict: TestVerdict, rest: Partial<TestGrade> = {}): TestGrade => ({
  verdict,
  score: verdict === 'passed' ? 1 : 0,
  cpuMs: 0,
  stderr: '',
  ...rest,
});

async function gradeCases(bench: Bench, codes: readonly string[]): Promise<TestGrade[]> {
  const cases = codes.map((code): OpenCase => ({ code, known: [], cpuMs: 0 }));
  for (let round = 0; round < maxRounds; round += 1) {
    const open = cases.filter(({ grade }) => grade === undefined);
    if (open.length === 0) break;
    const outcomes = await runTestCode(bench, open);
    const wanting: Wanting[] = [];
    for (const [at, one] of open.entries()) {
      const { state, why, calls } = outcomes[at] ?? { state: 'failed', why: 'the tests ended early', calls: '[]' };
      if (state === 'pending') wanting.push({ one, calls });
      else if (round === 0) throw toVerifierFault(`the test code fails without the program: ${describe(one.code, state, why)}`);
      else one.grade = toGrade(state === 'passed' ? 'passed' : 'wrong_output', { stderr: why, cpuMs: one.cpuMs });
    }
    if (wanting.length > 0) await runCalls(bench, wanting);
  }
  return cases.map(
    ({ grade, cpuMs }) => grade ?? toGrade('wrong_output', { stderr: `the test wanted other calls ${maxRounds} times`, cpuMs }),
  );
}

interface Wanting {
  readonly one: OpenCase;
  /** JSON. */
  readonly calls: string;
}

const describe = (code: string, state: string, why: string): string =>
  state === 'passed' ? `${code.slice(0, 200)} calls none of the functions` : `${code.slice(0, 200)}: ${why}`;

const outputBytesOf = (count: number): number => Math.min(maxOutputBytes, Math.floor(allOutputBytes / count));

const outcome = z.object({
  state: z.enum(['passed', 'failed', 'pending', 'refused']),
  why: z.string().default(''),
  calls: z.string().default('[]'),
});

/** Runs the test code with the results that are known. What results make it fail is the program's: they are all that changes between runs. */
async function runTestCode(bench: Bench, open: readonly OpenCase[]): Promise<z.infer<typeof outcome>[]> {
  const { task, tests } = bench;
  const { setup, functions } = task.test_code;
  const limits = { timeMs: task.time_limit_s * 1000 + spareMs, memoryMiB: testMemoryMiB, outputBytes: outputBytesOf(open.length) };
  const inputs = open.map(({ code, known }) => {
    const words = [setup, code, functions].map((one) => JSON.stringify(one));
    return { input: Buffer.from(`[${words.join(',')},[${known.join(',')}]]`), ...limits };
  });
  const list = await tests.run({ source: testProgram, functionName: testFunction, stopEarly: false }, inputs);
  if (list.runs.length < open.length) {
    const why = `the test code could not run: ${list.brokenBy ?? list.compileError ?? 'it ended early'}`;
    // Once it has results of the program, a control decides whose fault that is.
    throw open.every(({ known }) => known.length === 0) ? toVerifierFault(why) : new RolloutError('evaluate-failed', why);
  }
  return list.runs.map((run) => {
    const parsed = outcome.safeParse(tryJson(run.result.toString('utf8')));
    return parsed.data ?? { state: 'failed', why: `the test code ended by ${run.end}: ${run.stderr.slice(-500)}`, calls: '[]' };
  });
}

/** Adds the results to the cases as the program wrote them, or grades those that have none. */
async function runCalls({ task, program, programs }: Bench, wanting: readonly Wanting[]): Promise<void> {
  const limits = { timeMs: task.time_limit_s * 1000, memoryMiB: task.memory_limit_mib, outputBytes: outputBytesOf(wanting.length) };
  const inputs = wanting.map(({ calls }) => ({ input: Buffer.from(`[${calls}]`), ...limits }));
  const job = { source: program, functionName: callFunction, stopEarly: task.credit === 'all' };
  const list = await programs.run(job, inputs);
  for (const [at, { one, calls }] of wanting.entries()) {
    const run = list.runs[at];
    const failed = failedOf(run, list, task);
    one.cpuMs += run?.cpuMs ?? 0;
    if (failed !== undefined) one.grade = { ...failed, cpuMs: one.cpuMs };
    else if (run !== undefined) one.known.push(`[${calls},${JSON.stringify(run.result.toString('utf8'))}]`);
  }
}

function failedOf(
  run: TestRun | undefined,
  { compileError, brokenBy, isOutOfMemory }: RunList,
  task: AssertionTask,
): TestGrade | undefined {
  if (compileError !== undefined) return toGrade('compile_error', { stderr: compileError });
  if (run === undefined) return brokenBy === undefined ? toGrade('not_run') : toGrade('broke_sandbox', { stderr: brokenBy });
  const failure = failureOf(run, { task, isOutOfMemory }) ?? (run.result.length === 0 ? 'runtime_error' : undefined);
  return failure === undefined ? undefined : toGrade(failure, { stderr: run.stderr });
}
