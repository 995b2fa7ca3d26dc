// The harbor scenario: a task folder of Harbor or Terminal-Bench, run as it is. The reward is what tests/test.sh wrote. A check that wrote
// none is judged by a control run with the task's own solution: the agent broke it, or it is broken.

import { sleep } from '@millrace/base/clock';
import { RolloutError } from '@millrace/protocol';
import type { Sandbox, SandboxSpec } from '@millrace/sandbox';
import type { Scenario, TaskTrial } from '../scenario.ts';
import { renderShellValues } from '../shell.ts';
import { Prompts } from '../tools/prompts.ts';
import type { Score } from '../verifier/verifier.ts';
import { toVerifierFault } from '../verifier/verifier-fault.ts';
import { runControl, runOracle } from './control.ts';
import { collectEvidence, judgeEvidence, prepareFolders } from './evidence.ts';
import { type HarborTask, harborTask } from './harbor-task.ts';
import type { TestsRun } from './run-tests.ts';

/** For what is neither the tests nor the task's own solution. */
const spareS = 300;
const maxControls = 1000;

export function makeHarborScenario(): Scenario<HarborTask> {
  /** By digest: whether the task's own check works. */
  const controls = new Map<string, Promise<string | undefined>>();
  return {
    name: 'harbor',
    task: harborTask,
    sandbox: ({ spec }) => spec,
    evaluateSandbox: ({ verifierSpec }) => verifierSpec,
    runTimeoutS: ({ folder }) => folder.toml.agent.timeout_sec,
    evaluateTimeoutS: ({ folder: { toml } }) => 2 * toml.verifier.timeout_sec + (toml.agent.timeout_sec ?? 600) + spareS,

    prepare: {
      key: ({ digest }) => digest,
      run: ({ task, sandbox, signal }) => prepareFolders(sandbox, task.folder.environment, signal),
    },

    async init({ task, sandbox, prompts = new Prompts(), signal }) {
      await waitUntilHealthy(sandbox, task, signal);
      const { workdir } = task.folder.environment;
      const moved = await sandbox.runShell(`cd -- '${workdir.replaceAll("'", `'\\''`)}'`, { timeoutMs: 60_000, signal });
      if (moved.end !== 'exited') throw new RolloutError('sandbox-failed', `the shell did not enter ${workdir}: ${moved.end}`);
      if (moved.exitCode !== 0) throw new RolloutError('init-failed', `there is no working directory ${workdir}: ${moved.output.trim()}`);
      return {
        messages: [
          { role: 'system', content: prompts.render('shell', renderShellValues(task.tools, workdir)) },
          { role: 'user', content: task.folder.instruction },
        ],
        tools: task.tools,
      };
    },

    collect: ({ task, sandbox, signal }) => collectEvidence(sandbox, task, { timeoutMs: toTimeoutMs(task), signal }),

    lowestReward: ({ reward_range: [lowest] }) => lowest,
    highestReward: ({ reward_range: [, highest] }) => highest,

    async trial({ task, solution, openSandbox, signal }) {
      if (solution === 'gold' && !task.folder.hasSolution) throw new Error('there is no solution/solve.sh');
      const options = { openSandbox: (spec: SandboxSpec) => openSandbox(spec), timeoutMs: toTimeoutMs(task), signal };
      return toTrial(task, await runOracle(task, { ...options, solves: solution === 'gold' }));
    },

    async evaluate({ task, artifact, openSandbox, signal }) {
      const options = { openSandbox: (spec: SandboxSpec) => openSandbox(spec), timeoutMs: toTimeoutMs(task), signal };
      const run = await judgeEvidence(artifact, task, options);
      const score = toScore(task, run);
      if (score) return score;
      if (controls.size >= maxControls) controls.clear();
      const control = controls.get(task.digest) ?? runControl(task, options);
      controls.set(task.digest, control);
      control.catch(() => controls.delete(task.digest)); // a sandbox that died says nothing about the task
      return toFaultScore(task, run, await control);
    },
  };
}

const toTimeoutMs = ({ folder }: HarborTask): number => folder.toml.verifier.timeout_sec * 1000;

/** Absent if the run reported no reward, or did not end by itself: then the control decides, whatever it wrote before. */
function toScore({ reward_range: [lowest, highest] }: HarborTask, run: TestsRun): Score | undefined {
  const { report, end, exit_code, output, skipped = [] } = run;
  if (end !== undefined || report.kind === 'none') return undefined;
  const reward = Math.min(highest, Math.max(lowest, report.reward));
  const more = { ...(Object.keys(report.parts).length > 0 && { parts: report.parts }), ...(skipped.length > 0 && { skipped }) };
  return { reward, details: { exit_code, output, ...more } };
}

/** A check that reports nothing for an untouched environment says that it is wrong. */
function toTrial(task: HarborTask, run: TestsRun): TaskTrial {
  const score = toScore(task, run);
  const isRight = score?.reward === task.reward_range[1];
  const [reason, output] = [run.report.kind === 'none' ? run.report.reason : (run.end ?? `the reward is ${score?.reward}`), run.output];
  return { isRight, tests: {}, ...(isRight ? {} : { why: output === '' ? reason : `${reason}: ${output.slice(-300)}` }) };
}

/** `fault` is why the check reports no reward for the task's own solution either. */
function toFaultScore({ folder, reward_range: [lowest] }: HarborTask, { report, end, output }: TestsRun, fault: string | undefined): Score {
  const reason = end === undefined && report.kind === 'none' ? report.reason : `the check ${end}`;
  if (fault === undefined) return { reward: lowest, details: end === undefined ? { no_reward: reason, output } : { end, output } };
  const what = folder.hasSolution ? 'its own solution' : 'an untouched environment';
  throw toVerifierFault(`the check of ${folder.name} reports no reward, and none for ${what} either: ${fault}: ${output || reason}`);
}

/** As Docker does: failures in the start period do not count. */
async function waitUntilHealthy(sandbox: Sandbox, { folder }: HarborTask, signal: AbortSignal): Promise<void> {
  const { healthcheck } = folder.toml.environment;
  if (!healthcheck) return;
  const { command, timeout_sec, interval_sec, start_period_sec, start_interval_sec, retries } = healthcheck;
  let startLeft = Math.ceil(start_period_sec / start_interval_sec);
  for (let failures = 0; ; ) {
    const argv = ['/bin/sh', '-c', command];
    const result = await sandbox.exec(argv, { cwd: folder.environment.workdir, timeoutMs: timeout_sec * 1000, signal });
    if (result.exitCode === 0) return;
    if (startLeft <= 0) failures += 1;
    if (failures >= retries) throw new RolloutError('init-failed', `the health check failed ${failures} times: ${command}`);
    await sleep((startLeft > 0 ? start_interval_sec : interval_sec) * 1000, { signal });
    startLeft -= 1;
  }
}
