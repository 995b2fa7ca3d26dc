// Runs tests/test.sh of a Harbor task in a sandbox and reads the reward that it wrote. Reward files and tests that were there before are
// removed, and the reward is read only after every program has been killed.

import { join } from 'node:path';
import { RolloutError } from '@millrace/protocol';
import { type ExecResult, linkFolder, type Sandbox } from '@millrace/sandbox';
import { z } from 'zod';
import { type RewardReport, readReward, rewardFolder, rewardNames } from './reward-file.ts';
import { renderScriptCommand, writeFolder } from './sandbox-files.ts';
import type { TaskFolder } from './task-folder.ts';

const testsFolder = '/tests';
const setupTimeoutMs = 60_000;
/** The limit of one reply of the executor. */
const maxLogBytes = 64 << 20;
const outputBytes = 1 << 16;

interface TestsOptions {
  readonly folder: TaskFolder;
  readonly env: Readonly<Record<string, string>>;
  /** Whether /tests of the image is used, which no agent has touched. */
  readonly hasTests: boolean;
  readonly workdir: string;
  /** Leaves programs of the agent running, as Harbor does. */
  readonly keepsPrograms: boolean;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** One run of the tests, as it is kept between collecting and evaluating. */
export const testsRun = z.object({
  report: z.custom<RewardReport>(),
  /** Why the script did not end by itself. */
  end: z.string().optional(),
  exit_code: z.int().optional(),
  output: z.string(),
  /** What was left out of the artifacts. */
  skipped: z.array(z.string()).optional(),
});
export type TestsRun = z.infer<typeof testsRun>;

export async function runTests(sandbox: Sandbox, options: TestsOptions): Promise<TestsRun> {
  const { signal, folder, workdir, env, timeoutMs } = options;
  if (!options.keepsPrograms) await stopPrograms(sandbox, signal);
  const fault = await prepareTests(sandbox, options);
  if (fault !== undefined) return { report: { kind: 'none', reason: fault }, output: '' };
  const command = await renderScriptCommand(join(folder.path, 'tests/test.sh'), `${testsFolder}/test.sh`);
  const result = await sandbox.exec(command, { cwd: workdir, env, timeoutMs, capBytes: outputBytes, signal });
  const output = tailOf(result);
  const end = result.timedOut ? 'timed out' : result.exitCode === undefined ? `was killed by ${result.signal}` : undefined;
  const report = await readReport(sandbox, signal);
  return {
    report,
    output,
    ...(end === undefined ? {} : { end }),
    ...(result.exitCode === undefined ? {} : { exit_code: result.exitCode }),
  };
}

/** Kills everything but the executor. The folder is our own, and small. */
export async function stopPrograms(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
  await sandbox.readFolder(linkFolder, { maxBytes: 1 << 20, stopPrograms: true, signal });
}

const clear = `set -e
for folder in /logs ${rewardFolder}; do
  if [ -L $folder ] || [ ! -d $folder ]; then rm -rf $folder; mkdir $folder; fi
  chmod u+rwx $folder
done
rm -rf ${rewardNames.map((name) => `${rewardFolder}/${name}`).join(' ')} "$@"
mkdir -p /logs/agent /logs/artifacts`;

/** What kept the tests from being put in place; only an agent that worked in this sandbox can cause it. */
async function prepareTests(sandbox: Sandbox, { folder, hasTests, signal }: TestsOptions): Promise<string | undefined> {
  const argv = ['/bin/sh', '-c', clear, 'sh', ...(hasTests ? [] : [testsFolder])];
  const cleared = await sandbox.exec(argv, { timeoutMs: setupTimeoutMs, signal });
  if (cleared.exitCode !== 0) return `the folders of the check could not be cleared: ${tailOf(cleared)}`;
  // The programs that cleared them may be the agent's.
  for (const name of rewardNames) if (await isFile(sandbox, `${rewardFolder}/${name}`, signal)) return `${name} could not be removed`;
  if (hasTests) return undefined;
  try {
    const count = await writeFolder(sandbox, join(folder.path, 'tests'), testsFolder, signal);
    const written = await sandbox.readFolder(testsFolder, { maxBytes: maxLogBytes, anyLink: true, signal });
    return written.entries === count ? undefined : `${testsFolder} has ${written.entries} files and folders instead of ${count}`;
  } catch (error) {
    if (error instanceof RolloutError && /^(sandbox-refused|not-found)$/.test(error.code))
      return `the tests could not be written: ${error.message}`;
    throw error;
  }
}

async function isFile(sandbox: Sandbox, path: string, signal: AbortSignal): Promise<boolean> {
  return sandbox.readFile(path, { maxBytes: maxLogBytes, signal }).then(
    () => true,
    (error) => {
      if (error instanceof RolloutError && error.code === 'not-found') return false;
      if (error instanceof RolloutError && error.code === 'artifact-too-large') return true;
      throw error;
    },
  );
}

async function readReport(sandbox: Sandbox, signal: AbortSignal): Promise<RewardReport> {
  try {
    return readReward((await sandbox.readFolder(rewardFolder, { maxBytes: maxLogBytes, stopPrograms: true, signal })).archive);
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    if (error.code === 'not-found') return { kind: 'none', reason: `${rewardFolder} is gone` };
    if (error.code === 'artifact-too-large') return { kind: 'none', reason: `${rewardFolder} has more than ${maxLogBytes} bytes` };
    throw error;
  }
}

export function tailOf({ stdout, stderr }: ExecResult): string {
  return [stdout, stderr]
    .map((stream) => stream.subarray(-2000).toString('utf8').trim())
    .filter(Boolean)
    .join('\n');
}
