// The sandbox in which a program is tested. What disturbed a run from outside is repeated in a fresh sandbox, so that only what the program
// does again and again counts against it, and only if a program that does nothing is left alone for as long.

import { systemClock } from '@millrace/base/clock';
import { RolloutError } from '@millrace/protocol';
import type { Sandbox } from '@millrace/sandbox';
import { toStarved } from '@millrace/sandbox';
import { toVerifierFault } from '../verifier/verifier-fault.ts';
import { type RunList, runTests, type TestInput, type TestJob, type TestRun } from './run-tests.ts';

/** How often a list is started at most, and then the program that does nothing. */
const tries = 5;
const longestControlMs = 10_000;
const sigkill = 9;
/** CPU time of the executor and of the runner that is not in the runs. */
const spareCpuMs = 500;

/** Puts what the tests need into a sandbox, before each start. */
type Prepare = (sandbox: Sandbox) => Promise<void>;

export class TestBench {
  readonly #open: () => Promise<Sandbox>;
  readonly #signal: AbortSignal | undefined;
  #sandbox: Sandbox;

  private constructor(sandbox: Sandbox, open: () => Promise<Sandbox>, signal: AbortSignal | undefined) {
    this.#sandbox = sandbox;
    this.#open = open;
    this.#signal = signal;
  }

  /** `open` returns a sandbox in which the program is ready to run. */
  static async open(open: () => Promise<Sandbox>, signal: AbortSignal | undefined): Promise<TestBench> {
    return new TestBench(await open(), open, signal);
  }

  /** Throws `evaluate-failed` if the runner does not start in a fresh sandbox, and `evaluate-disturbed` if the machine allowed no verdict. */
  async run(job: TestJob, tests: readonly TestInput[], prepare: Prepare = async () => {}): Promise<RunList> {
    const list = await this.#runOnce(job, tests, prepare);
    if (tests.length === 1 || list.hiddenCpuMs < spareCpuMs + leastTimeMs(tests)) return list;
    return await this.#runEach(job, tests, prepare);
  }

  /** One by one, so that it shows which of them used CPU time that no process waited for. */
  async #runEach(job: TestJob, tests: readonly TestInput[], prepare: Prepare): Promise<RunList> {
    const runs: TestRun[] = [];
    for (const test of tests) {
      const list = await this.#runOnce(job, [test], prepare);
      runs.push(...list.runs);
      const hasFailed = list.runs.some(({ end, exitCode }) => end !== 'exit' || exitCode !== 0);
      if (list.brokenBy !== undefined || list.compileError !== undefined || (hasFailed && job.stopEarly)) return { ...list, runs };
    }
    return { runs, isOutOfMemory: false, hiddenCpuMs: 0 };
  }

  async #runOnce(job: TestJob, tests: readonly TestInput[], prepare: Prepare): Promise<RunList> {
    let longestMs = 0;
    for (let number = 1; ; number += 1) {
      if (number > 1) this.#sandbox = await this.#open();
      await prepare(this.#sandbox);
      const startedMs = systemClock.monotonic();
      const list = await runTests(this.#sandbox, job, tests, this.#signal);
      longestMs = Math.max(longestMs, systemClock.monotonic() - startedMs);
      const { foreignOomKills } = this.#sandbox.readUse();
      if (list.runs.some(({ end }) => end === 'starved')) throw toStarved('a test got too little of this machine');
      if (!isDisturbed(list)) return charge(list, tests);
      if (number < tries) continue;
      if (list.unstarted === 'killed')
        throw new RolloutError('evaluate-disturbed', 'the runner of the tests was killed before it had started');
      if (list.unstarted) throw toVerifierFault(`the runner of the tests did not start: ${list.brokenBy}`);
      if (foreignOomKills > 0) throw new RolloutError('evaluate-disturbed', 'this machine ran out of memory during the tests');
      if (await this.#isIdlerKilled(longestMs))
        throw new RolloutError('evaluate-disturbed', 'this machine kills programs that do nothing, as it did those of the tests');
      return list;
    }
  }

  /** Whether a program that only sleeps, for as long as the killed ones lived, is killed as well. */
  async #isIdlerKilled(lifeMs: number): Promise<boolean> {
    const ms = Math.min(lifeMs, longestControlMs);
    const job = { source: `import time\ntime.sleep(${ms / 1000})`, runtimeMiB: 64, stopEarly: true };
    const test = { input: Buffer.alloc(0), timeMs: ms, memoryMiB: 64, outputBytes: 1000 };
    for (let number = 1; number <= tries; number += 1) {
      this.#sandbox = await this.#open();
      if (isDisturbed(await runTests(this.#sandbox, job, [test], this.#signal))) return true;
    }
    return false;
  }
}

/** Something ended the runner or a program that neither of them shows to have done: a program that did it does it again. */
function isDisturbed({ runs, brokenBy, isStopped, isOutOfMemory }: RunList): boolean {
  return !isOutOfMemory && !isStopped && (brokenBy !== undefined || runs.some(({ signal }) => signal === sigkill));
}

const leastTimeMs = (tests: readonly TestInput[]): number => Math.min(...tests.map(({ timeMs }) => timeMs));

/** A single test is charged what its sandbox used. */
function charge(list: RunList, tests: readonly TestInput[]): RunList {
  const [[run], [test]] = [list.runs, tests];
  if (!run || !test || tests.length > 1 || list.hiddenCpuMs < spareCpuMs) return list;
  const cpuMs = run.cpuMs + list.hiddenCpuMs;
  return { ...list, runs: [{ ...run, cpuMs, end: run.end === 'exit' && cpuMs > test.timeMs + spareCpuMs ? 'time' : run.end }] };
}
