// What judging a swe rollout costs beyond its tests: the whole evaluation, with the diff that we take, fresh sandboxes, restored tests and
// the graded log, against the bare test command in a sandbox that has everything ready.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '@millrace/base/log';
import { openBubblewrapDriver, type SandboxDriver } from '@millrace/sandbox';
import { loadScenarios } from '@millrace/scenarios';
import type { BenchReport } from '../report/report.ts';

const rounds = 10;
const workdir = '/workspace/repo';
const repair = "sed -i 's/a \\* 3/a * 2/' calc.py";
const limits = { init_timeout_s: 300, run_timeout_s: 300, evaluate_timeout_s: 300, tool_timeout_s: 60 } as never;

/** A repository of 200 modules and 400 tests, which take about a second. */
const setup = `set -e
export HOME=/tmp GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q -b main ${workdir}; cd ${workdir}
printf 'def double(a):\\n    return a * 3\\n' > calc.py
mkdir tests; touch tests/__init__.py
for i in $(seq 200); do
  printf 'import time\\nimport unittest\\n\\n\\nclass T%s(unittest.TestCase):\\n    def test_a(self):\\n        time.sleep(0.004)\\n\\n    def test_b(self):\\n        self.assertEqual(1, 1)\\n' $i > tests/test_$i.py
  printf 'value = %s\\n' $i > module_$i.py
done
git add -A; git commit -q -m base; git tag base`;

/** Adds a test that fails until `double` of the package `calc` doubles. */
export const testPatch = `diff --git a/tests/test_double.py b/tests/test_double.py
new file mode 100644
--- /dev/null
+++ b/tests/test_double.py
@@ -0,0 +1,7 @@
+import unittest
+from calc import double
+
+
+class DoubleTests(unittest.TestCase):
+    def test_double(self):
+        self.assertEqual(double(4), 8)
`;
const command = 'python3 -m unittest -v';

export async function runSweEvaluateBench(): Promise<BenchReport> {
  const runDir = await mkdtemp(join(tmpdir(), 'bench-'));
  try {
    const driver = await openBubblewrapDriver({ runDir, log: silentLog });
    const bare = await measureBare(driver);
    const whole = await measureEvaluate(driver);
    return {
      title: 'Judging a swe rollout',
      rows: [
        { what: 'the bare test command, in a sandbox that is ready', unit: 'ms', samples: bare },
        { what: 'evaluate of the swe scenario', against: 0, unit: 'ms', samples: whole },
      ],
      notes: [
        `A repository of 400 files whose ${400 + 1} tests take about a second; ${rounds} rounds. evaluate opens its sandboxes, prepares the repository twice, takes the diff, applies it, restores the tests and grades the log.`,
      ],
    };
  } finally {
    await rm(runDir, { recursive: true, force: true });
  }
}

async function measureBare(driver: SandboxDriver): Promise<number[]> {
  await using sandbox = await driver.open({});
  const run = async (script: string, cwd = '/workspace') => {
    const result = await sandbox.exec(['bash', '-c', script], { cwd, timeoutMs: 120_000 });
    if (result.exitCode !== 0) throw new Error(`${script.slice(0, 80)} failed: ${result.stderr.toString('utf8').slice(-500)}`);
  };
  await run(setup);
  await run(`git apply - <<'END'\n${testPatch}END\n${repair}`, workdir);
  const samples: number[] = [];
  for (let round = 0; round < rounds; round++) samples.push(await measure(() => run(command, workdir)));
  return samples;
}

async function measureEvaluate(driver: SandboxDriver): Promise<number[]> {
  const scenario = (await loadScenarios([])).get('swe');
  const parsed = await scenario?.task.safeParseAsync(toRow());
  if (!scenario || !parsed?.success) throw new Error('the task of the benchmark is not a swe task');
  const { data: task } = parsed;
  const signal = AbortSignal.timeout(600_000);
  const end = { stopReason: 'tool_stopped', answer: '' } as const;
  await using agent = await driver.open({});
  await scenario.prepare?.run({ task, sandbox: agent, limits, signal });
  const { state } = await scenario.init({ task, sandbox: agent, limits, signal });
  await agent.exec(['bash', '-c', repair], { cwd: workdir, timeoutMs: 10_000 });
  const artifact = (await scenario.collect?.({ task, sandbox: agent, limits, signal, end, state })) ?? Buffer.alloc(0);
  const samples: number[] = [];
  for (let round = 0; round < rounds; round++) {
    await using opened = new AsyncDisposableStack();
    const openSandbox = async (spec = {}) => opened.use(await driver.open(spec));
    samples.push(
      await measure(async () => {
        const { reward, details } = await scenario.evaluate({ task, artifact, end, sampledTokens: 0, openSandbox, limits, signal });
        if (reward !== 1) throw new Error(`the repaired repository has reward ${reward}: ${JSON.stringify(details)}`);
      }),
    );
  }
  return samples;
}

function toRow(): Record<string, unknown> {
  return {
    instance_id: 'bench-1',
    repo: 'example/calc',
    base_commit: 'base',
    problem_statement: 'double(4) is 12.',
    workdir,
    setup,
    test_command: command,
    test_patch: testPatch,
    log_parser: 'unittest',
    FAIL_TO_PASS: ['test_double (tests.test_double.DoubleTests.test_double)'],
    PASS_TO_PASS: ['test_a (tests.test_1.T1.test_a)', 'test_b (tests.test_200.T200.test_b)'],
  };
}

async function measure(work: () => Promise<void>): Promise<number> {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}
