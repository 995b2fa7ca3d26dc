// Applies patches in the sandbox of the tests: the agent's with the fallbacks of SWE-bench, then the tests of the task over what it touched.

import { RolloutError } from '@millrace/protocol';
import type { Sandbox } from '@millrace/sandbox';
import { describeEnd } from '../../verifier/verifier.ts';
import { gitEnv } from './prepare.ts';
import type { ChangedPath } from './take-diff.ts';

interface ApplyOptions {
  readonly workdir: string;
  /** Paths that the patch adds: ignored files in a folder of that name make room. */
  readonly added?: readonly string[];
  /** The repository has changes that must stay. */
  readonly keep?: boolean;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** In this order. Unless `keep` is set, the repository is restored between two of them. */
const applyScript = `exec 3>&1 >&2
cd -- "$workdir" || exit 3
while IFS= read -r -d '' path; do [ -L "$path" ] || [ ! -d "$path" ] || git --literal-pathspecs clean -q -fdX -- "$path"; done
ways=('git apply --verbose' 'git apply --verbose --3way' 'git apply --verbose --reject' 'patch --batch --forward --fuzz=5 -p1 -i')
[ -z "$keep" ] || ways=('git apply --verbose' 'patch --batch --forward --fuzz=5 -p1 -i')
for how in "\${ways[@]}"; do
  if $how "$file"; then rm -f -- "$file"; printf %s "$how" >&3; exit 0; fi
  [ -n "$keep" ] || { git reset -q --hard HEAD; git clean -q -fd; }
done
exit 1`;
const patchFile = '/tmp/millrace-patch.diff';

/** Undefined if the patch does not apply, with the reason in `why`. */
interface Applied {
  readonly by?: string;
  readonly why: string;
}

export async function applyPatch(
  sandbox: Sandbox,
  patch: string | Buffer,
  { workdir, added = [], keep = false, timeoutMs, signal }: ApplyOptions,
): Promise<Applied> {
  const text = typeof patch === 'string' && !patch.endsWith('\n') ? `${patch}\n` : patch;
  if (text.toString().trim() === '') return { by: 'nothing to apply', why: '' };
  const optional = signal ? { signal } : {};
  await sandbox.writeFile(patchFile, text, optional);
  const env = { ...gitEnv, workdir, file: patchFile, keep: keep ? '1' : '' };
  const stdin = added.map((path) => `${path}\0`).join('');
  const result = await sandbox.exec(['/bin/bash', '-c', applyScript], { env, stdin, cwd: '/', timeoutMs, ...optional });
  if (result.exitCode === 0) return { by: result.stdout.toString('utf8').trim(), why: '' };
  if (result.exitCode === 1) return { why: result.stderr.subarray(-1000).toString('utf8').trim() };
  throw new RolloutError('evaluate-failed', `the patch could not be applied: bash ${describeEnd(result)}`);
}

/** The paths are read from standard input: what is to be restored, then what is to be removed, each followed by a null character. */
const restoreScript = `cd -- "$workdir" || exit 3
remove=0
while IFS= read -r -d '' path; do
  if [ -z "$path" ]; then remove=1; continue; fi
  at=$path
  while [ "$at" != . ]; do # a link or a file in the place of a folder
    if [ -L "$at" ] || { [ "$at" != "$path" ] && [ -e "$at" ] && [ ! -d "$at" ]; }; then rm -f -- "$at"; fi
    at=$(dirname -- "$at")
  done
  if [ "$remove" = 1 ]; then rm -rf -- "$path"; else rm -rf -- "$path"; git --literal-pathspecs checkout -q HEAD -- "$path" || exit 4; fi
done`;

/** Puts these paths back as they were at the start of the task. */
export async function restorePaths(
  sandbox: Sandbox,
  paths: readonly ChangedPath[],
  { workdir, timeoutMs, signal }: ApplyOptions,
): Promise<void> {
  if (paths.length === 0) return;
  const [added, known] = [paths.filter(({ status }) => status === 'A'), paths.filter(({ status }) => status !== 'A')];
  const stdin = [...known.map(({ path }) => path), '', ...added.map(({ path }) => path)].map((path) => `${path}\0`).join('');
  const result = await sandbox.exec(['/bin/bash', '-c', restoreScript], {
    env: { ...gitEnv, workdir },
    stdin,
    cwd: '/',
    timeoutMs,
    ...(signal ? { signal } : {}),
  });
  if (result.exitCode !== 0) throw new RolloutError('evaluate-failed', `the test files could not be restored: git ${describeEnd(result)}`);
}

/** Which of these paths the start of the task has. */
const listScript = `cd -- "$workdir" || exit 3
while IFS= read -r -d '' path; do
  if git cat-file -e "HEAD:$path" 2> /dev/null; then printf 'M\\0%s\\0' "$path"; else printf 'A\\0%s\\0' "$path"; fi
done`;

export async function findPaths(
  sandbox: Sandbox,
  paths: readonly string[],
  { workdir, timeoutMs, signal }: ApplyOptions,
): Promise<ChangedPath[]> {
  if (paths.length === 0) return [];
  const options = {
    env: { ...gitEnv, workdir },
    stdin: paths.map((path) => `${path}\0`).join(''),
    cwd: '/',
    timeoutMs,
    ...(signal ? { signal } : {}),
  };
  const { stdout, exitCode } = await sandbox.exec(['/bin/bash', '-c', listScript], { ...options, capBytes: 8 << 20 });
  if (exitCode !== 0) throw new RolloutError('evaluate-failed', 'the test files of the task could not be listed');
  const words = stdout.toString('utf8').split('\0');
  return paths.map((path, at) => ({ status: words[2 * at] ?? 'A', path }));
}
