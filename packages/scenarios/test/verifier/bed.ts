// One bubblewrap driver for the tests of a file, and checks that judge what an agent left in a sandbox of it.

import assert from 'node:assert/strict';
import { silentLog } from '@millrace/base/log';
import { openBubblewrapDriver, type Sandbox, type SandboxDriver } from '@millrace/sandbox';
import { makeTempFolder } from '@millrace/testkit/plain';
import { type CheckScript, runCheck } from '../../src/verifier/run-check.ts';
import { unpackFolder } from '../../src/verifier/unpack-folder.ts';
import type { Score } from '../../src/verifier/verifier.ts';

export interface Judgement {
  /** What the agent runs in its shell; nothing by default. */
  readonly agent?: string;
  readonly answer?: string;
  readonly check: string;
  readonly language?: CheckScript['language'];
  /** Hidden files in the sandbox of the check, by path. */
  readonly hidden?: Readonly<Record<string, string>>;
}

export class CheckBed implements AsyncDisposable {
  readonly #stack: AsyncDisposableStack;
  readonly #driver: SandboxDriver;

  private constructor(stack: AsyncDisposableStack, driver: SandboxDriver) {
    this.#stack = stack;
    this.#driver = driver;
  }

  static async open(): Promise<CheckBed> {
    const stack = new AsyncDisposableStack();
    const { path } = stack.use(await makeTempFolder('ch'));
    return new CheckBed(stack, await openBubblewrapDriver({ runDir: path, log: silentLog }));
  }

  open(): Promise<Sandbox> {
    return this.#driver.open({});
  }

  /** Collects what the agent left, and runs the check on it in a fresh sandbox. */
  async judge({ agent, answer = '', check, language = 'bash', hidden = {} }: Judgement): Promise<Score> {
    await using opened = new AsyncDisposableStack();
    const openSandbox = async () => opened.use(await this.open());
    const archive = agent === undefined ? undefined : await this.collect(agent);
    const sandbox = await openSandbox();
    const { skipped } = archive ? await unpackFolder(sandbox, archive) : { skipped: [] };
    for (const [path, text] of Object.entries(hidden)) await sandbox.writeFile(path, text);
    return await runCheck(sandbox, { script: check, language, openSandbox, env: { ANSWER: answer }, skipped, timeoutMs: 30_000 });
  }

  async reward(judgement: Judgement): Promise<number> {
    return (await this.judge(judgement)).reward;
  }

  /** Runs an agent in a sandbox of its own, and packs what it left. */
  async collect(agent: string): Promise<Buffer> {
    await using sandbox = await this.open();
    const { exitCode, output } = await sandbox.runShell(agent, { timeoutMs: 30_000 });
    assert.equal(exitCode, 0, output);
    return (await sandbox.readFolder('/workspace', { maxBytes: 8 << 20, stopPrograms: true })).archive;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack[Symbol.asyncDispose]();
  }
}
