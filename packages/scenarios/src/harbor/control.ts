// The oracle of a Harbor task: its own solution, in a fresh environment, judged like an agent. It shows whether the check of a task works,
// and it is what `millrace task check` runs.

import { join } from 'node:path';
import { RolloutError } from '@millrace/protocol';
import { collectEvidence, type JudgeOptions, judgeEvidence, prepareFolders } from './evidence.ts';
import type { HarborTask } from './harbor-task.ts';
import { type TestsRun, tailOf } from './run-tests.ts';
import { renderScriptCommand, writeFolder } from './sandbox-files.ts';

/** Why the check reports no reward for the task's own solution, or for an untouched environment if it has none; absent if it works. */
export async function runControl(task: HarborTask, options: JudgeOptions): Promise<string | undefined> {
  const { report, end } = await runOracle(task, { ...options, solves: task.folder.hasSolution });
  return end === undefined ? (report.kind === 'none' ? report.reason : undefined) : `it ${end}`;
}

interface OracleOptions extends JudgeOptions {
  /** False leaves the environment untouched: the empty solution. */
  readonly solves: boolean;
}

/** Throws `task-failed` if the solution does not end in time. Its exit code does not count, as in Harbor. */
export async function runOracle(task: HarborTask, { solves, ...options }: OracleOptions): Promise<TestsRun> {
  const { signal } = options;
  const sandbox = await options.openSandbox(task.spec);
  await prepareFolders(sandbox, task.folder.environment, signal);
  if (solves) {
    const { path, environment, toml } = task.folder;
    await writeFolder(sandbox, join(path, 'solution'), '/solution', signal);
    const command = await renderScriptCommand(join(path, 'solution/solve.sh'), '/solution/solve.sh');
    const timeoutMs = (toml.agent.timeout_sec ?? 600) * 1000;
    const env = { DEBIAN_FRONTEND: 'noninteractive', ...task.solutionEnv };
    const result = await sandbox.exec(command, { cwd: environment.workdir, env, timeoutMs, signal });
    if (result.timedOut)
      throw new RolloutError(
        'task-failed',
        `solution/solve.sh of ${task.folder.name} did not end within ${timeoutMs / 1000} s: ${tailOf(result)}`,
      );
  }
  const evidence = await collectEvidence(sandbox, task, options);
  return await judgeEvidence(evidence, task, options);
}
