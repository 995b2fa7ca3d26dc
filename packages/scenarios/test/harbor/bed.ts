// One Apptainer driver for the Harbor tasks of a test file, with a small image in the place of Debian's. An agent is a list of shell commands;
// its task is prepared, collected and judged as the pipeline does it.

import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { silentLog } from '@millrace/base/log';
import type { RolloutError } from '@millrace/protocol';
import { ImageCache, openApptainerDriver, type Sandbox, type SandboxDriver, type SandboxSpec } from '@millrace/sandbox';
import { makeTempFolder, makeTinyImage } from '@millrace/testkit';
import { makeHarborScenario } from '../../src/harbor/harbor.ts';
import { type HarborTask, harborTask } from '../../src/harbor/harbor-task.ts';
import { collectScenario, evaluateScenario, initScenario, prepareScenario } from '../../src/hooks.ts';
import type { Scenario, TaskTrial } from '../../src/scenario.ts';
import type { Score } from '../../src/verifier/verifier.ts';

export const exampleFolder = join(import.meta.dirname, '../../../../examples/harbor');

const limits = {
  ...{ max_turns: 10, max_tokens: 1000, max_context: 1000, init_timeout_s: 300, run_timeout_s: 300, evaluate_timeout_s: 300 },
  ...{ tool_timeout_s: 60, max_retries: 0 },
};

export class HarborBed implements AsyncDisposable {
  readonly folder: string;
  readonly #stack: AsyncDisposableStack;
  readonly #driver: SandboxDriver;
  readonly #scenario = makeHarborScenario() as Scenario;

  private constructor(stack: AsyncDisposableStack, folder: string, driver: SandboxDriver) {
    this.#stack = stack;
    this.folder = folder;
    this.#driver = driver;
  }

  static async open(): Promise<HarborBed> {
    const stack = new AsyncDisposableStack();
    const { path } = stack.use(await makeTempFolder('hb'));
    await makeTinyImage(join(path, 'debian'));
    const names = { 'debian:12-slim': join(path, 'debian') };
    const images = new ImageCache({ folder: join(path, 'images'), maxBytes: 2 ** 32, names });
    return new HarborBed(stack, path, await openApptainerDriver({ runDir: join(path, 'run'), log: silentLog, images }));
  }

  /** A task folder of these files, with a Dockerfile and a solution unless they say otherwise. */
  async write(name: string, files: Readonly<Record<string, string>>): Promise<string> {
    const folder = join(this.folder, 'tasks', name);
    const all = {
      'task.toml': '[environment]\nmemory_mb = 512\n',
      'instruction.md': 'Write 42 to /app/answer.',
      'environment/Dockerfile': 'FROM debian:12-slim\nWORKDIR /app\n',
      'solution/solve.sh': 'echo 42 > /app/answer\n',
      ...files,
    };
    for (const [path, content] of Object.entries(all)) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), content);
    }
    return folder;
  }

  read(folder: string): Promise<HarborTask> {
    return harborTask.parseAsync({ folder });
  }

  /** What the pipeline would record for an agent that runs these commands. */
  async judge(folder: string, commands: readonly string[]): Promise<Score> {
    const scenario = this.#scenario;
    const task = await this.read(folder);
    const signal = AbortSignal.timeout(240_000);
    const end = { stopReason: 'completed', answer: '' } as const;
    await using stack = new AsyncDisposableStack();
    const openSandbox = async (spec: SandboxSpec = task.spec): Promise<Sandbox> => stack.use(await this.#driver.open(spec, { signal }));
    const context = { task, limits: limits as never, signal };
    const sandbox = await openSandbox();
    await prepareScenario(scenario, { ...context, sandbox });
    await initScenario(scenario, { ...context, sandbox });
    for (const command of commands) await sandbox.runShell(command, { timeoutMs: 60_000 });
    const artifact = await collectScenario(scenario, { ...context, sandbox, end });
    await sandbox[Symbol.asyncDispose]();
    return await evaluateScenario(scenario, { ...context, end, artifact, sampledTokens: 0, openSandbox });
  }

  /** The error that judging ends with. */
  async fail(folder: string, commands: readonly string[]): Promise<Pick<RolloutError, 'code' | 'blame' | 'message'>> {
    return this.judge(folder, commands).then(
      (score) => ({ code: 'internal', blame: 'service', message: `there was no error: ${JSON.stringify(score)}` }),
      (error: RolloutError) => error,
    );
  }

  /** What `millrace task check` sees. */
  async trial(folder: string, solution: 'gold' | 'empty'): Promise<TaskTrial | undefined> {
    const task = await this.read(folder);
    await using stack = new AsyncDisposableStack();
    const signal = AbortSignal.timeout(240_000);
    const openSandbox = async (spec: SandboxSpec = task.spec) => stack.use(await this.#driver.open(spec, { signal }));
    const openPrepared = () => openSandbox();
    return await this.#scenario.trial?.({ task, solution, limits: limits as never, openSandbox, openPrepared, signal });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack[Symbol.asyncDispose]();
  }
}
