// Reads the reward from what a check reported and how it ended. After the agent had a say, what is broken is the lowest reward; only evidence
// in the script itself blames the verifier.

import { RolloutError } from '@millrace/protocol';
import type { ExecResult, Sandbox } from '@millrace/sandbox';
import { reports } from './check-prelude.ts';
import { examineCheck } from './examine-check.ts';
import type { LintRule } from './lint/lint-finding.ts';
import { toVerifierFault } from './verifier-fault.ts';

/** The reward is the number that the verifier measured; `details` is stored with it for people. A verifier that cannot measure throws. */
export interface Score {
  readonly reward: number;
  readonly details?: Readonly<Record<string, unknown>>;
}

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

interface ScoredCheck {
  readonly script: string;
  readonly language?: 'bash' | 'python';
  readonly rewardRange?: readonly [number, number];
  readonly skipped?: readonly string[];
  openSandbox(): Promise<Sandbox>;
  readonly signal?: AbortSignal;
}

interface CheckRun {
  readonly secret: string;
  /** How many judged programs were started. */
  readonly judged: number;
}

export const maxReportBytes = 1 << 16;
const findTimeoutMs = 30_000;

export async function toScore(check: ScoredCheck, result: ExecResult, { secret, judged }: CheckRun): Promise<Score> {
  const [lowest, highest] = check.rewardRange ?? [0, 1];
  const { exitCode, timedOut, stdout } = result;
  const details = {
    ...(exitCode === undefined ? { end: describeHow(result) } : { exit_code: exitCode }),
    output: tailOf(result.stderr),
    ...(check.skipped === undefined || check.skipped.length === 0 ? {} : { skipped: check.skipped }),
  };
  const lines = stdout.toString('utf8').split('\n').filter(Boolean);
  const found = lines.filter((line) => line.startsWith(`${secret} `)).map((line) => line.slice(secret.length + 1));
  const [fault] = take(found, reports.fault);
  if (fault !== undefined)
    throw toVerifierFault(`the check script is not valid ${check.language ?? 'bash'}: ${fault} ${details.output}`.trim());
  const ends = [...take(found, reports.reward), ...take(found, reports.end)];
  if (ends.length === 0 && exitCode !== undefined) await blameScript(check, 'exec', details.output);
  if (take(found, reports.misplaced).length > 0) await blameScript(check, 'reward-subshell', details.output);
  // Only code of the agent writes anything else there, shuts it down, or reports besides the check itself.
  const isForeign = found.length < lines.length || stdout.length >= maxReportBytes || (result.signal === 'SIGPIPE' && !timedOut);
  const isTampered =
    isForeign || ends.length > 1 || take(found, reports.misplaced).length > 0 || (ends.length === 0 && exitCode !== undefined);
  if (isTampered) return { reward: lowest, details: { ...details, tampered: true } };
  // Whether the agent made it slow is shown by an agent that did nothing.
  if (timedOut) throw new RolloutError('evaluate-timeout', `the check did not end in its time: ${details.output}`);
  if (exitCode === undefined) return { reward: lowest, details };
  const report = take(found, reports.reward)[0]?.trim();
  if (report === undefined) {
    const missing = exitCode === 0 || judged > 0 ? undefined : await findMissing(check, take(found, reports.missing));
    if (missing === undefined) return { reward: exitCode === 0 ? highest : lowest, details };
    throw toVerifierFault(`the check script needs ${missing}, which its sandbox does not have: ${details.output}`);
  }
  const reward = Number(report);
  if (report !== '' && Number.isFinite(reward)) return { reward: Math.min(highest, Math.max(lowest, reward)), details };
  await blameScript(check, 'reward-word', `it reported ${JSON.stringify(report.slice(0, 200))} as the reward`);
  return { reward: lowest, details: { ...details, invalid_reward: report.slice(0, 200) } };
}

/** Throws if the script itself shows this fault, whatever the agent did. */
async function blameScript({ script, language }: ScoredCheck, rule: LintRule, seen: string): Promise<void> {
  const findings = language === 'python' ? [] : await examineCheck(script, { keepsAllowed: true });
  const finding = findings.find((one) => one.rule === rule);
  if (finding) throw toVerifierFault(`line ${finding.line} of the check script: ${finding.message}: ${seen}`.trim());
}

function take(found: readonly string[], kind: string): string[] {
  return found.filter((line) => line === kind || line.startsWith(`${kind} `)).map((line) => line.slice(kind.length + 1));
}

/** A script that runs files of the agent in its own shell may miss a function that the agent should have defined. */
const runsFiles = /(^|[\s;&|({])(source|\.|eval)\s/;

/** The first of these programs that the script names and a fresh sandbox lacks too: the agent's text may name any, and its code remove any. */
async function findMissing({ script, openSandbox, signal }: ScoredCheck, names: readonly string[]): Promise<string | undefined> {
  const name = names.find((one) => script.split(/[\s;&|(){}<>"'`$]+/).includes(one));
  if (name === undefined || runsFiles.test(script)) return undefined;
  const sandbox = await openSandbox();
  const find = ['/bin/bash', '--norc', '-p', '-c', 'type -P -- "$0"', name];
  const { exitCode } = await sandbox.exec(find, { timeoutMs: findTimeoutMs, ...(signal ? { signal } : {}) });
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
