// The verifier: runs a check script on files that an agent left, in a sandbox that the agent never touched, and reads its reward. Code of the
// agent that runs during the check has the same user as the check, and cannot change the script, report a reward or read its secret.

import { randomBytes } from 'node:crypto';
import { RolloutError } from '@millrace/protocol';
import type { ExecResult, Sandbox } from '../sandbox/sandbox.ts';
import { checkPrelude } from './check-prelude.ts';
import type { Score } from './scenario.ts';

export interface CheckScript {
  /**
   * A bash script that runs in /workspace. Exit code 0 is the highest reward, any other the lowest; `reward NUMBER` reports a number
   * instead, and the last one counts. It runs the agent's programs as `judged COMMAND`, and `stop_judged` kills what they left.
   */
  readonly script: string;
  /** The lowest and the highest reward; [0, 1] by default. A number outside of it becomes the nearest of the two. */
  readonly rewardRange?: readonly [number, number];
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

const workspace = '/workspace';
const maxShellBytes = 64 << 20;
const reportBytes = 1 << 16;

/** Read by programs of the check. The agent's files must not configure them. */
const cleanEnv = {
  BASH_ENV: '',
  ENV: '',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  ...renderGitConfig({ 'core.fsmonitor': 'false', 'core.hooksPath': '/dev/null', 'core.pager': 'cat', 'safe.directory': '*' }),
};

/** These override the configuration of a repository. */
function renderGitConfig(config: Readonly<Record<string, string>>): Record<string, string> {
  const fields = Object.entries(config).flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return { GIT_CONFIG_COUNT: String(Object.keys(config).length), ...Object.fromEntries(fields) };
}

/** Makes the kernel prefer the check and its programs when memory runs out, which the hidden shell could not do; then becomes that shell. */
const start = 'echo 1000 > /proc/self/oom_score_adj; exec "$0" --norc -p -c "$1" check';

/**
 * Call it once, in a sandbox that holds the agent's files in /workspace and in which none of them has run. Throws `evaluate-failed` if
 * the check could not run: it timed out, was killed, ended with 126 or more, or reported something that is not a number.
 */
export async function runCheck(sandbox: Sandbox, check: CheckScript): Promise<Score> {
  const { script, rewardRange = [0, 1], env, signal, timeoutMs } = check;
  const options = signal === undefined ? {} : { signal };
  const secret = randomBytes(24).toString('hex');
  const folder = `/tmp/check-${randomBytes(12).toString('hex')}`;
  // The kernel protects a process whose program its user cannot read: no other process may trace it, or open its memory or descriptors.
  // What counts is the mode when it starts.
  const shell = `${folder}/bash`;
  await sandbox.writeFile(shell, await sandbox.readFile('/bin/bash', { maxBytes: maxShellBytes, ...options }), { mode: 0o111, ...options });
  const result = await sandbox.exec(['/bin/bash', '--norc', '-p', '-c', start, shell, checkPrelude], {
    cwd: workspace,
    env: { ...env, ...cleanEnv, HOME: folder },
    // In its memory only: a file could be changed while bash reads it, and arguments and variables can be read.
    stdin: `${secret}\0${script.replaceAll('\0', '')}\0`,
    capBytes: reportBytes,
    timeoutMs,
    ...options,
  });
  return toScore(result, secret, rewardRange);
}

/** A check that could not run is a failure of the verifier, never a reward of 0. */
function toScore(result: ExecResult, secret: string, [lowest, highest]: readonly [number, number]): Score {
  const { exitCode, timedOut, stdout } = result;
  if (result.signal === 'SIGPIPE' && !timedOut) return { reward: lowest, details: { output: tailOf(result.stderr), tampered: true } };
  if (exitCode === undefined || timedOut || exitCode >= 126)
    throw new RolloutError('evaluate-failed', `the check script ${describeEnd(result)}`);
  const details = { exit_code: exitCode, output: tailOf(result.stderr) };
  const lines = stdout.toString('latin1').split('\n').filter(Boolean);
  const reports = lines.filter((line) => line.startsWith(`${secret} `)).map((line) => line.slice(secret.length + 1).trim());
  // Only code under test writes anything else there.
  if (reports.length < lines.length || stdout.length >= reportBytes) return { reward: lowest, details: { ...details, tampered: true } };
  const report = reports.at(-1);
  if (report === undefined) return { reward: exitCode === 0 ? highest : lowest, details };
  const reward = Number(report);
  if (report === '' || !Number.isFinite(reward))
    throw new RolloutError('evaluate-failed', `the check script reported ${JSON.stringify(report)} as the reward`);
  return { reward: Math.min(highest, Math.max(lowest, reward)), details };
}

/** How a script ended, with the end of its output. */
export function describeEnd(result: ExecResult): string {
  const how = result.timedOut
    ? 'timed out'
    : result.exitCode === undefined
      ? `was killed by ${result.signal}`
      : `failed with exit code ${result.exitCode}`;
  const output = tailOf(Buffer.concat([result.stdout, result.stderr]));
  return output === '' ? how : `${how}: ${output}`;
}

function tailOf(output: Buffer): string {
  return output.subarray(-2000).toString('utf8').trim();
}
