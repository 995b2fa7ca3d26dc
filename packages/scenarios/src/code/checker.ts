// Runs a task's checker program on outputs of the agent's program, in a sandbox in which none of that program has run. A checker that fails
// on an output is tried on the expected output too: if it fails there as well, the verifier is at fault, and otherwise the output is wrong.

import { definedOf } from '@millrace/protocol';
import type { Sandbox } from '@millrace/sandbox';
import { toVerifierFault } from '../verifier/verifier-fault.ts';
import type { CodeChecker } from './code-task.ts';
import { CompileError, openCompiled } from './compile.ts';
import { languages, renderRun } from './languages.ts';
import type { TestRun } from './run-tests.ts';
import { TestBench } from './test-bench.ts';

const memoryMiB = 1024;
const outputBytes = 1 << 16;
const fileNames = ['input', 'output', 'answer'] as const;
type FileName = (typeof fileNames)[number];

export interface CheckedOutput {
  readonly input: string;
  readonly output: Buffer;
  readonly answer: string;
}

export class Checker {
  readonly #checker: CodeChecker;
  readonly #bench: TestBench;
  readonly #signal: AbortSignal | undefined;

  private constructor(checker: CodeChecker, bench: TestBench, signal: AbortSignal | undefined) {
    this.#checker = checker;
    this.#bench = bench;
    this.#signal = signal;
  }

  /** Throws `evaluate-failed` if it does not compile. */
  static async open(openSandbox: () => Promise<Sandbox>, checker: CodeChecker, signal: AbortSignal | undefined): Promise<Checker> {
    const { language, source } = checker;
    const openChecker = async () => {
      try {
        return await openCompiled({ language, source, openSandbox, signal });
      } catch (error) {
        if (error instanceof CompileError) throw toVerifierFault(`the checker does not compile: ${error.message.trim()}`);
        throw error;
      }
    };
    return new Checker(checker, await TestBench.open(openChecker, signal), signal);
  }

  /** Between 0 and 1 for each output. */
  async score(outputs: readonly CheckedOutput[]): Promise<number[]> {
    const scores = await this.#run(outputs);
    const failed = outputs.filter((_, at) => scores[at] === undefined);
    if (failed.length > 0) await this.#tryExpected(failed);
    return scores.map((score) => score ?? 0);
  }

  async #tryExpected(failed: readonly CheckedOutput[]): Promise<void> {
    const expected = failed.map((one) => ({ ...one, output: Buffer.from(one.answer) }));
    const scores = await this.#run(expected);
    if (scores.some((score) => score === undefined))
      throw toVerifierFault('the checker fails on the expected output too: it crashed, timed out or printed no number');
  }

  async #run(outputs: readonly CheckedOutput[]): Promise<(number | undefined)[]> {
    const language = languages[this.#checker.language];
    const run = renderRun(language, memoryMiB);
    const pathOf = (at: number, name: FileName) => `/tmp/check/${at}.${name}`;
    const tests = outputs.map((_, at) => {
      const argv = [...run, ...this.#checker.arguments.map((name) => pathOf(at, name))];
      return { input: Buffer.alloc(0), argv, timeMs: this.#checker.time_limit_s * 1000, memoryMiB, outputBytes };
    });
    const writeFiles = async (sandbox: Sandbox) => {
      for (const [at, one] of outputs.entries())
        for (const name of fileNames) await sandbox.writeFile(pathOf(at, name), one[name], definedOf({ signal: this.#signal }));
    };
    const job = { argv: run, stopEarly: false, ...definedOf({ runtimeMiB: language.runtimeMiB }) };
    const { runs } = await this.#bench.run(job, tests, writeFiles);
    return outputs.map((_, at) => this.#toScore(runs[at]));
  }

  /** Undefined if the checker failed. Testlib's exit codes: 1 and 2 refuse, 3 and above are failures. */
  #toScore(run: TestRun | undefined): number | undefined {
    if (run === undefined || run.end !== 'exit') return undefined;
    const printed = run.stdout.toString('utf8').trim();
    if (this.#checker.verdict === 'stdout' && run.exitCode === 0) {
      const score = printed === '' ? Number.NaN : Number(printed.split(/\s+/).at(-1));
      return Number.isFinite(score) ? Math.min(1, Math.max(0, score)) : undefined;
    }
    if (run.exitCode === 0) return 1;
    const isCrash = run.exitCode === undefined || run.exitCode > 2 || run.stderr.includes('Traceback (most recent call last)');
    return isCrash ? undefined : 0;
  }
}
