// The verifier: runs a check script on files that an agent left, in a sandbox that the agent never touched, and reads its reward. Programs of
// the agent run in a second sandbox. A check that the agent's files break is the lowest reward; a check that is itself broken throws.

import { randomBytes } from 'node:crypto';
import { RolloutError } from '@millrace/protocol';
import type { ExecResult, Sandbox } from '../../sandbox/sandbox.ts';
import { checkPrelude, faultReport, missingReport, pythonGuard } from './check-prelude.ts';
import { JudgedPrograms } from './judged-programs.ts';

/** The reward is the number that the verifier measured; `details` is stored with it for people. A verifier that cannot measure throws. */
export interface Score {
  readonly reward: number;
  readonly details?: Readonly<Record<string, unknown>>;
}

export interface CheckScript {
  /**
   * A bash script that runs in /workspace. Exit code 0 is the highest reward, any other the lowest; `reward NUMBER` reports a number
   * instead, and the last one counts. It runs the agent's programs as `judged COMMAND`, in a sandbox apart.
   */
  readonly script: string;
  /** Opens the sandbox of the judged programs: pass the one of the context of `evaluate`. */
  openSandbox(): Promise<Sandbox>;
  /** The lowest and the highest reward; [0, 1] by default. A number outside of it becomes the nearest of the two. */
  readonly rewardRange?: readonly [number, number];
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

const workspace = '/workspace';
const reportBytes = 1 << 16;
const setupTimeoutMs = 30_000;

/** Read by programs of the check. The agent's files must not configure them. */
export const cleanEnv = {
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

/**
 * The kernel protects a process whose program its user cannot read: no other process may trace it, or open its memory or descriptors. What
 * counts is the mode when it starts.
 */
const setup = `set -e; umask 077; mkdir "$0" "$0/home" "$0/python"; cp /bin/bash "$0/bash"; chmod 0111 "$0/bash"; mkfifo "$0/requests"
cat > "$0/python/sitecustomize.py"`;

/** Makes the kernel prefer the check and its programs when memory runs out, which the hidden shell could not do; then becomes that shell. */
const start = 'echo 1000 > /proc/self/oom_score_adj; exec "$0/bash" --norc -p -c "$1" check "$0"';

const clean = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', ...cleanEnv };

/**
 * Call it once, in a sandbox that holds the agent's files in /workspace and in which none of them has run. A check that times out, is killed
 * or cannot read what the agent left is the lowest reward. Throws `evaluate-failed` if the script itself is at fault: it is not valid bash, it
 * needs a program that the sandbox does not have, or it contains a `reward` without a number.
 */
export async function runCheck(sandbox: Sandbox, check: CheckScript): Promise<Score> {
  const { script, env, timeoutMs } = check;
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, ...(check.signal ? [check.signal] : [])]);
  const secret = randomBytes(24).toString('hex');
  const folder = `/tmp/check-${randomBytes(12).toString('hex')}`;
  const prepared = await sandbox.exec(['/bin/bash', '--norc', '-p', '-c', setup, folder], {
    env: clean,
    stdin: pythonGuard,
    timeoutMs: setupTimeoutMs,
    signal,
  });
  if (prepared.exitCode !== 0) throw new RolloutError('evaluate-failed', `the check could not be set up: it ${describeEnd(prepared)}`);
  const judged = new JudgedPrograms(sandbox, { folder, openSandbox: check.openSandbox, timeoutMs, signal });
  try {
    const failed = Promise.withResolvers<never>();
    failed.promise.catch(() => {}); // it may reject after the check has ended
    judged.serve().catch(failed.reject);
    const running = sandbox.exec(['/bin/bash', '--norc', '-p', '-c', start, folder, checkPrelude], {
      cwd: workspace,
      env: { ...withoutNulls(env), ...cleanEnv, HOME: `${folder}/home` },
      // In its memory only: a file could be changed while bash reads it, and arguments and variables can be read.
      stdin: `${secret}\0${script.replaceAll('\0', '')}\0`,
      capBytes: reportBytes,
      timeoutMs,
      signal,
    });
    const result = await Promise.race([running, failed.promise]);
    return await toScore({ ...check, signal }, result, { secret, judged: judged.count });
  } finally {
    over.abort(new RolloutError('internal', 'the check has ended'));
  }
}

/** The agent's answer may be one of them, and no variable can hold a null character. */
function withoutNulls(env: CheckScript['env'] = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(env).map(([name, value]) => [name, value.replaceAll('\0', '')]));
}

interface CheckRun {
  readonly secret: string;
  /** How many judged programs were started. */
  readonly judged: number;
}

async function toScore(check: CheckScript, result: ExecResult, { secret, judged }: CheckRun): Promise<Score> {
  const [lowest, highest] = check.rewardRange ?? [0, 1];
  const { exitCode, timedOut, stdout } = result;
  const details = { ...(exitCode === undefined ? { end: describeHow(result) } : { exit_code: exitCode }), output: tailOf(result.stderr) };
  const lines = stdout.toString('utf8').split('\n').filter(Boolean);
  const reports = lines.filter((line) => line.startsWith(`${secret} `)).map((line) => line.slice(secret.length + 1));
  const [fault] = take(reports, faultReport);
  if (fault !== undefined)
    throw new RolloutError('evaluate-failed', `the check script is not valid bash: ${fault} ${details.output}`.trim());
  // Only code under test writes anything else there, or shuts it down.
  const isTampered = reports.length < lines.length || stdout.length >= reportBytes || (result.signal === 'SIGPIPE' && !timedOut);
  if (isTampered) return { reward: lowest, details: { ...details, tampered: true } };
  const report = take(reports, 'reward').at(-1)?.trim();
  if (timedOut || exitCode === undefined) return { reward: lowest, details: { ...details, end: describeHow(result) } };
  if (report === undefined) {
    const missing = exitCode === 0 || judged > 0 ? undefined : await findMissing(check, take(reports, missingReport));
    if (missing === undefined) return { reward: exitCode === 0 ? highest : lowest, details };
    throw new RolloutError('evaluate-failed', `the check script needs ${missing}, which its sandbox does not have: ${details.output}`);
  }
  const reward = Number(report);
  if (report !== '' && Number.isFinite(reward)) return { reward: Math.min(highest, Math.max(lowest, reward)), details };
  if (report !== '' && check.script.includes(`reward ${report}`))
    throw new RolloutError('evaluate-failed', `the check script reported ${JSON.stringify(report)} as the reward`);
  return { reward: lowest, details: { ...details, invalid_reward: report.slice(0, 200) } };
}

function take(reports: readonly string[], kind: string): string[] {
  return reports.filter((line) => line.startsWith(`${kind} `)).map((line) => line.slice(kind.length + 1));
}

/** A script that runs files of the agent in its own shell may miss a function that the agent should have defined. */
const runsFiles = /(^|[\s;&|({])(source|\.|eval)\s/;

/** The first of these programs that a fresh sandbox lacks too: code under test may have removed the others. */
async function findMissing({ script, openSandbox, signal }: CheckScript, names: readonly string[]): Promise<string | undefined> {
  const [name] = names;
  if (name === undefined || runsFiles.test(script)) return undefined;
  const sandbox = await openSandbox();
  const find = ['/bin/bash', '--norc', '-p', '-c', 'type -P -- "$0"', name];
  const { exitCode } = await sandbox.exec(find, { timeoutMs: setupTimeoutMs, ...(signal ? { signal } : {}) });
  return exitCode === 0 ? undefined : name;
}

/** How a program ended, with the end of its output. */
export function describeEnd(result: ExecResult): string {
  const output = tailOf(Buffer.concat([result.stdout, result.stderr]));
  const how = describeHow(result);
  return output === '' ? how : `${how}: ${output}`;
}

function describeHow({ timedOut, exitCode, signal }: ExecResult): string {
  if (timedOut) return 'timed out';
  return exitCode === undefined ? `was killed by ${signal}` : `failed with exit code ${exitCode}`;
}

function tailOf(output: Buffer): string {
  return output.subarray(-2000).toString('utf8').trim();
}
