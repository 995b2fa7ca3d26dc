// One bubblewrap driver for the tests of a file, and a program graded on it.

import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { OwnTime, openBubblewrapDriver, type Sandbox, type SandboxDriver, type SandboxSpec } from '@millrace/sandbox';
import { makeTempFolder } from '@millrace/testkit/plain';
import type { z } from 'zod';
import { type CodeTask, codeFields } from '../../src/code/code-task.ts';
import { gradeProgram, type TestGrade } from '../../src/code/grade.ts';

type Fields = Partial<z.input<typeof codeFields>>;

export class GradeBed implements AsyncDisposable {
  readonly #stack: AsyncDisposableStack;
  readonly #driver: SandboxDriver;

  private constructor(stack: AsyncDisposableStack, driver: SandboxDriver) {
    this.#stack = stack;
    this.#driver = driver;
  }

  static async open(): Promise<GradeBed> {
    const stack = new AsyncDisposableStack();
    const { path } = stack.use(await makeTempFolder('gr'));
    return new GradeBed(stack, await openBubblewrapDriver({ runDir: path, log: silentLog }));
  }

  open(): Promise<Sandbox> {
    return this.#driver.open({});
  }

  async grade(program: string, fields: Fields = {}, spec: SandboxSpec = {}): Promise<readonly TestGrade[]> {
    const task: CodeTask = codeFields.parse({ question: 'q', tests: [{ input: '', output: '' }], ...fields });
    await using opened = new AsyncDisposableStack();
    const { signal } = new AbortController();
    using time = new OwnTime({ what: 'evaluate', timeoutMs: 120_000, clock: systemClock, signal, isLastTry: true });
    const openSandbox = async () => time.watch(opened.use(await this.#driver.open(spec)));
    return await gradeProgram({ task, program, openSandbox });
  }

  async verdicts(program: string, fields: Fields = {}): Promise<string[]> {
    return (await this.grade(program, fields)).map(({ verdict }) => verdict);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack[Symbol.asyncDispose]();
  }
}

/** Tests of a program that prints the double of its input. */
export const doubles = (count: number) => Array.from({ length: count }, (_, at) => ({ input: `${at}\n`, output: `${2 * at}\n` }));
