// Runs a task's checker program on outputs of the agent's program, in a sandbox in which none of that program has run. A checker that fails
// on an output is tried on the expected output too: if it fails there as well, the verifier is at fault, and otherwise the output is wrong.

import { RolloutError } from '@millrace/protocol';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { CodeChecker } from './code-task.ts';
import { languages } from './languages.ts';
import { type RunLimits, runTests, type TestRun } from './run-tests.ts';

const folder = '/workspace';
const memoryMiB = 1024;
const outputBytes = 1 << 16;
const compileMs = 60_000;

export interface CheckedOutput {
  readonly input: string;
  readonly output: Buffer;
  readonly answer: string;
}

export class Checker {
  readonly #sandbox: Sandbox;
  readonly #checker: CodeChecker;

  private constructor(sandbox: Sandbox, checker: CodeChecker) {
    this.#sandbox = sandbox;
    this.#checker = checker;
  }

  /** Throws `evaluate-failed` if it does not compile. */
  static async open(sandbox: Sandbox, checker: CodeChecker, signal?: AbortSignal): Promise<Checker> {
    const { file, compile } = languages[checker.language];
    const optional = signal ? { signal } : {};
    await sandbox.writeFile(`${folder}/${file}`, checker.source, optional);
    if (compile) {
      const { exitCode, stderr } = await sandbox.exec(compile, { cwd: folder, timeoutMs: compileMs, ...optional });
      if (exitCode !== 0)
        throw new RolloutError('evaluate-failed', `the checker does not compile: ${stderr.subarray(0, 2000).toString('utf8').trim()}`);
    }
    return new Checker(sandbox, checker);
  }

  /** Between 0 and 1 for each output. */
  async score(outputs: readonly CheckedOutput[], limits: RunLimits): Promise<number[]> {
    const scores = await this.#run(outputs, limits);
    const failed = outputs.filter((_, at) => scores[at] === undefined);
    if (failed.length > 0) await this.#tryExpected(failed, limits);
    return scores.map((score) => score ?? 0);
  }

  async #tryExpected(failed: readonly CheckedOutput[], limits: RunLimits): Promise<void> {
    const expected = failed.map((one) => ({ ...one, output: Buffer.from(one.answer) }));
    const scores = await this.#run(expected, limits);
    if (scores.some((score) => score === undefined))
      throw new RolloutError('evaluate-failed', 'the checker fails on the expected output too: it crashed, timed out or printed no number');
  }

  async #run(outputs: readonly CheckedOutput[], limits: RunLimits): Promise<(number | undefined)[]> {
    const { run } = languages[this.#checker.language];
    const optional = limits.signal ? { signal: limits.signal } : {};
    const tests = [];
    for (const [at, one] of outputs.entries()) {
      const paths = { input: `/tmp/check/${at}.in`, output: `/tmp/check/${at}.out`, answer: `/tmp/check/${at}.ans` };
      await this.#sandbox.writeFile(paths.input, one.input, optional);
      await this.#sandbox.writeFile(paths.output, one.output, optional);
      await this.#sandbox.writeFile(paths.answer, one.answer, optional);
      const argv = [...run, ...this.#checker.arguments.map((name) => paths[name])];
      tests.push({ input: Buffer.alloc(0), argv, timeMs: this.#checker.time_limit_s * 1000, memoryMiB, outputBytes });
    }
    const { runs } = await runTests(this.#sandbox, { argv: run, stopEarly: false }, tests, limits);
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
