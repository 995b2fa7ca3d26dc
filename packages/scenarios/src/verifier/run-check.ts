// The verifier: runs a check script on files that an agent left, in a sandbox that the agent never touched, and reads its reward. Programs of
// the agent run in a second sandbox. A check that the agent's files break is the lowest reward; a check that is itself broken throws.

import { randomBytes } from 'node:crypto';
import { maxBodyBytes, RolloutError } from '@millrace/protocol';
import type { Sandbox } from '@millrace/sandbox';
import { checkPrelude, pythonGuard, pythonPrelude } from './check-prelude.ts';
import { JudgedPrograms } from './judged-programs.ts';
import { pythonCheck } from './python-check.ts';
import { cleanEnv, describeEnd, maxReportBytes, type Score, toScore } from './verifier.ts';

export interface CheckScript {
  /**
   * A script that runs in /workspace. Exit code 0 is the highest reward, any other the lowest; `reward NUMBER` reports a number instead, and
   * the last one counts. It runs the agent's programs as `judged COMMAND`, in a sandbox apart.
   */
  readonly script: string;
  /** bash by default. A check in Python imports its functions from `millrace.check`. */
  readonly language?: 'bash' | 'python';
  /** Opens the sandbox of the judged programs: pass the one of the context of `evaluate`. */
  openSandbox(): Promise<Sandbox>;
  /** The lowest and the highest reward; [0, 1] by default. A number outside of it becomes the nearest of the two. */
  readonly rewardRange?: readonly [number, number];
  /** Variables of the script, each cut after 100,000 bytes: agents write long answers. */
  readonly env?: Readonly<Record<string, string>>;
  /** What was left out of the agent's files, as `unpackFolder` returned it: shown in the details. */
  readonly skipped?: readonly string[];
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

const workspace = '/workspace';
const setupTimeoutMs = 30_000;
/** Linux starts no program with a variable of 128 KiB. */
const maxVariableBytes = 100_000;

/** Makes the kernel prefer the check and its programs when memory runs out, which the hidden shell could not do; then becomes that shell. */
const start = 'echo 1000 > /proc/self/oom_score_adj; exec "$0/bash" --norc -p -c "$1" check "$0" "$2"';

/**
 * Call it once, in a sandbox that holds the agent's files in /workspace and in which none of them has run; judged programs get all that is
 * there now. A check that is killed or cannot read what the agent left is the lowest reward. Throws `evaluate-failed` if the script itself is
 * at fault: it is not valid, it needs a program that the sandbox does not have, or it contains a `reward` without a number; and
 * `evaluate-timeout` if it does not end, which is the agent's fault if it ends for an agent that did nothing.
 */
export async function runCheck(sandbox: Sandbox, check: CheckScript): Promise<Score> {
  const { script, language = 'bash', env, timeoutMs } = check;
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, ...(check.signal ? [check.signal] : [])]);
  const secret = randomBytes(24).toString('hex');
  const folder = `/tmp/check-${randomBytes(12).toString('hex')}`;
  const mayJudge = language === 'python' || reachesJudged.test(script);
  await prepareFolder(sandbox, folder, { mayJudge, signal });
  const files = mayJudge ? (await sandbox.readFolder(workspace, { maxBytes: maxBodyBytes, signal })).archive : Buffer.alloc(0);
  const judged = new JudgedPrograms(sandbox, { folder, files, openSandbox: check.openSandbox, timeoutMs, signal });
  try {
    const failed = Promise.withResolvers<never>();
    failed.promise.catch(() => {}); // it may reject after the check has ended
    if (mayJudge) judged.serve().catch(failed.reject);
    const prelude = language === 'python' ? pythonPrelude : checkPrelude;
    const running = sandbox.exec(['/bin/bash', '--norc', '-p', '-c', start, folder, prelude, pythonCheck], {
      cwd: workspace,
      env: { ...toVariables(env), ...cleanEnv, HOME: `${folder}/home` },
      // In its memory only: a file could be changed while bash reads it, and arguments and variables can be read.
      stdin: `${secret}\0${script.replaceAll('\0', '')}\0`,
      capBytes: maxReportBytes,
      timeoutMs,
      signal,
    });
    const result = await Promise.race([running, failed.promise]);
    return await toScore({ ...check, signal }, result, { secret, judged: judged.count });
  } finally {
    over.abort(new RolloutError('internal', 'the check has ended'));
  }
}

/** A script that names none of these runs no judged program: files that it runs in its own shell may. */
const reachesJudged = /judged|source|eval|(^|[\s;&|({])\.\s/;

/** What the sandbox refuses to the set-up, for lack of room or of /bin/bash. */
const refusals: ReadonlySet<string> = new Set(['sandbox-refused', 'sandbox-limit', 'not-found']);

/**
 * The kernel protects a process whose program its user cannot read: no other process may trace it, or open its memory or descriptors. What
 * counts is the mode when it starts. So the shell of the check is a copy of bash that can only be executed.
 */
async function prepareFolder(
  sandbox: Sandbox,
  folder: string,
  { mayJudge, signal }: { mayJudge: boolean; signal: AbortSignal },
): Promise<void> {
  const made = Promise.all([
    sandbox.makeFolder(folder, { mode: 0o700, signal }),
    sandbox.makeFolder(`${folder}/home`, { mode: 0o700, signal }),
    sandbox.writeFile(`${folder}/python/sitecustomize.py`, pythonGuard, { signal }),
    sandbox.copyFile('/bin/bash', `${folder}/bash`, { mode: 0o111, signal }),
  ]);
  await made.catch((error) => {
    if (!(error instanceof RolloutError) || !refusals.has(error.code)) throw error;
    throw new RolloutError('evaluate-failed', `the check could not be set up: ${error.message}`, { cause: error });
  });
  if (!mayJudge) return;
  const prepared = await sandbox.exec(['mkfifo', `${folder}/requests`], { env: cleanEnv, timeoutMs: setupTimeoutMs, signal });
  if (prepared.exitCode !== 0) throw new RolloutError('evaluate-failed', `the check could not be set up: it ${describeEnd(prepared)}`);
}

/** The agent's answer may be one of them: none may be so long that no program can be started, or hold a null character or half of one. */
function toVariables(env: CheckScript['env'] = {}): Record<string, string> {
  const space = new Uint8Array(maxVariableBytes);
  const cut = (value: string) => value.slice(0, new TextEncoder().encodeInto(value, space).read);
  return Object.fromEntries(Object.entries(env).map(([name, value]) => [name, cut(value.replaceAll('\0', '').toWellFormed())]));
}
