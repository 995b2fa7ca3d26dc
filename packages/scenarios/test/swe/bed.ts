// A small repository with a bug, its fix in the future, and its tests; and an agent that is a bash script. The repository is made by the setup
// of the task in bubblewrap sandboxes, with unittest as the test runner.

import { silentLog } from '@millrace/base/log';
import { openBubblewrapDriver, type Sandbox, type SandboxDriver, type SandboxSpec } from '@millrace/sandbox';
import { makeTempFolder } from '@millrace/testkit/plain';
import type { z } from 'zod';
import type { Scenario } from '../../src/scenario.ts';
import { makeSweScenario } from '../../src/swe/swe.ts';
import { type SweTask, sweFields } from '../../src/swe/task/swe-task.ts';
import type { Score } from '../../src/verifier/verifier.ts';

const workdir = '/workspace/repo';

/** The fix is in a later commit, a tag, a branch of a remote, a stash, the reflog and an object that nothing refers to. */
export const setup = `set -e
export HOME=/tmp GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q -b master ${workdir}; cd ${workdir}
mkdir calc tests
printf 'build/\\n*.log\\n' > .gitignore
printf 'def add(a, b):\\n    return a + b\\n\\n\\ndef double(a):\\n    return a * 3\\n' > calc/__init__.py
printf '' > tests/__init__.py
printf 'import unittest\\nfrom calc import add\\n\\n\\nclass AddTests(unittest.TestCase):\\n    def test_add(self):\\n        self.assertEqual(add(1, 2), 3)\\n' > tests/test_add.py
git add -A; git commit -q -m 'first'
echo old > NOTES; git add -A; git commit -q -m 'base'; git tag base
mkdir build; echo binary > build/artefact
sed -i 's/a \\* 3/a * 2 # the-fix/' calc/__init__.py; git commit -q -a -m 'the-fix'; git tag v2
git update-ref refs/remotes/origin/main HEAD; git config remote.origin.url https://example.org/x.git
echo '# the-fix stashed' >> calc/__init__.py; git stash -q
echo 'the-fix loose' | git hash-object -w --stdin > /dev/null
git checkout -q -b work; git reset -q --hard base`;

export const testPatch = `diff --git a/tests/test_double.py b/tests/test_double.py
new file mode 100644
--- /dev/null
+++ b/tests/test_double.py
@@ -0,0 +1,10 @@
+import unittest
+from calc import double
+
+
+class DoubleTests(unittest.TestCase):
+    def test_double(self):
+        self.assertEqual(double(4), 8)
+
+    def test_zero(self):
+        self.assertEqual(double(0), 0)
`;

export const goldPatch = `diff --git a/calc/__init__.py b/calc/__init__.py
--- a/calc/__init__.py
+++ b/calc/__init__.py
@@ -3,4 +3,4 @@ def add(a, b):
 
 
 def double(a):
-    return a * 3
+    return a * 2
`;

type Fields = Partial<z.input<typeof sweFields>>;

export function makeTask(fields: Fields = {}): SweTask {
  return sweFields.parse({
    instance_id: 'calc-1',
    repo: 'example/calc',
    base_commit: 'base',
    problem_statement: 'double(4) is 12.',
    workdir,
    setup,
    test_command: 'python3 -m unittest -v tests.test_add tests.test_double',
    test_patch: testPatch,
    log_parser: 'unittest',
    FAIL_TO_PASS: ['test_double (tests.test_double.DoubleTests.test_double)'],
    PASS_TO_PASS: ['test_zero (tests.test_double.DoubleTests.test_zero)', 'test_add (tests.test_add.AddTests.test_add)'],
    patch: goldPatch,
    ...fields,
  });
}

const limits = { init_timeout_s: 120, run_timeout_s: 120, evaluate_timeout_s: 120 };

export class SweBed implements AsyncDisposable {
  readonly #stack: AsyncDisposableStack;
  readonly #driver: SandboxDriver;
  readonly #states = new WeakMap<Sandbox, unknown>();
  readonly scenario: Scenario<SweTask> = makeSweScenario();

  private constructor(stack: AsyncDisposableStack, driver: SandboxDriver) {
    this.#stack = stack;
    this.#driver = driver;
  }

  /** With bubblewrap, unless another driver is given. */
  static async open(openDriver?: (runDir: string) => Promise<SandboxDriver>): Promise<SweBed> {
    const stack = new AsyncDisposableStack();
    const { path } = stack.use(await makeTempFolder('sw'));
    return new SweBed(stack, await (openDriver?.(path) ?? openBubblewrapDriver({ runDir: path, log: silentLog })));
  }

  /** The agent's sandbox, prepared. */
  async openAgent(task: SweTask): Promise<Sandbox> {
    const { scenario } = this;
    const sandbox = await this.#driver.open((await scenario.sandbox?.(task)) ?? {});
    const context = { task, sandbox, limits: limits as never, signal: AbortSignal.timeout(120_000) };
    try {
      await scenario.prepare?.run(context);
      const { state } = await scenario.init(context);
      this.#states.set(sandbox, state);
      return sandbox;
    } catch (error) {
      await sandbox[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Runs the agent's script in the repository, and judges what it left. */
  async judge(script: string, fields: Fields = {}): Promise<Score> {
    const task = makeTask(fields);
    const artifact = await this.collect(script, task);
    return await this.evaluate(artifact, task);
  }

  async collect(script: string, task: SweTask): Promise<Buffer> {
    await using sandbox = await this.openAgent(task);
    await sandbox.exec(['/bin/bash', '-c', script], { cwd: workdir, timeoutMs: 60_000 });
    const end = { reason: 'finished', answer: '' } as never;
    const context = { task, sandbox, limits: limits as never, signal: AbortSignal.timeout(120_000), end, state: this.#states.get(sandbox) };
    return (await this.scenario.collect?.(context)) ?? Buffer.alloc(0);
  }

  async evaluate(artifact: Buffer, task: SweTask): Promise<Score> {
    await using opened = new AsyncDisposableStack();
    const openSandbox = async (spec: SandboxSpec = {}) => opened.use(await this.#driver.open(spec));
    const signal = AbortSignal.timeout(120_000);
    const end = { reason: 'finished', answer: '' } as never;
    return await this.scenario.evaluate({ task, artifact, end, sampledTokens: 0, openSandbox, limits: limits as never, signal });
  }

  async trial(solution: 'gold' | 'empty', fields: Fields = {}) {
    await using opened = new AsyncDisposableStack();
    const openSandbox = async (spec: SandboxSpec = {}) => opened.use(await this.#driver.open(spec));
    const openPrepared = () => Promise.reject(new Error('the swe scenario prepares its sandboxes itself'));
    const signal = AbortSignal.timeout(120_000);
    return await this.scenario.trial?.({ task: makeTask(fields), solution, openSandbox, openPrepared, limits: limits as never, signal });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack[Symbol.asyncDispose]();
  }
}

export const repair = "sed -i 's/a \\* 3/a * 2/' calc/__init__.py";
