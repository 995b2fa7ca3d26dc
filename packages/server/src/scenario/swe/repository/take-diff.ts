// Makes the diff of what the agent changed, in a sandbox in which nothing of the agent runs, with the git of the image.

import { RolloutError } from '@millrace/protocol';
import type { Sandbox } from '../../../sandbox/sandbox.ts';
import { describeEnd } from '../../verifier/verifier.ts';
import type { Changes } from './changes.ts';
import { gitEnv } from './prepare.ts';

/** One changed path, by git's letter: added, modified, deleted, or of another type (a link). */
export interface ChangedPath {
  readonly status: string;
  readonly path: string;
}

export interface Diff {
  readonly patch: string;
  readonly paths: readonly ChangedPath[];
}

export interface DiffOptions {
  readonly workdir: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

const maxPatchBytes = 16 << 20;
const listPath = '/tmp/millrace-unchanged';

/**
 * Removes tracked files that the agent no longer has, and unpacks the changed ones. Files that the repository ignores are left out by the rules
 * of its start, so that an agent cannot add them by changing the rules; its `.gitignore` files are therefore added last.
 */
const script = `set -e
cd -- "$workdir"
declare -A kept=()
while IFS= read -r -d '' path; do kept[$path]=1; done < "$list"
rm -f -- "$list"
drop_missing() { while IFS= read -r -d '' path; do
  [ -n "\${kept[$path]}" ] || { rm -f -- "$path" 2> /dev/null && rmdir -p -- "$(dirname -- "$path")" 2> /dev/null; } || true
done; }
rules=(.gitignore '*/.gitignore')
git ls-files -z -- . ':!:.gitignore' ':!:*/.gitignore' | drop_missing
cat > "$archive"
mkdir -p -- "$workdir"; cd -- "$workdir"
tar --extract --file="$archive" --no-same-owner --exclude=.gitignore
git add -A
git ls-files -z -- "\${rules[@]}" | drop_missing
mkdir -p -- "$workdir"; cd -- "$workdir"
tar --extract --file="$archive" --no-same-owner --wildcards '*/.gitignore' 2> /dev/null || true
rm -f -- "$archive"
git ls-files -z --cached --others -- "\${rules[@]}" | xargs -0 -r git --literal-pathspecs add -A -f --
git diff --cached --name-status -z --no-renames HEAD > "$list"
git diff --cached --binary --full-index --no-color --no-ext-diff --no-textconv --no-renames HEAD`;

const commandNotFound = 127;

/** Throws `policy-failed` if the agent's files cannot be unpacked or the diff is too large, and `task-failed` if the image lacks a program. */
export async function takeDiff(sandbox: Sandbox, changes: Changes, { workdir, timeoutMs, signal }: DiffOptions): Promise<Diff> {
  const optional = signal ? { signal } : {};
  await sandbox.writeFile(listPath, changes.unchanged, optional);
  const env = { ...gitEnv, workdir, list: listPath, archive: '/tmp/millrace-changes.tar' };
  const options = { env, stdin: changes.archive, cwd: '/', timeoutMs, capBytes: maxPatchBytes, ...optional };
  const result = await sandbox.exec(['/bin/bash', '-c', script], options);
  // Nothing of the agent's is on the PATH of this sandbox.
  if (result.exitCode === commandNotFound)
    throw new RolloutError('task-failed', `the image lacks a program that taking the diff needs: git ${describeEnd(result)}`);
  if (result.exitCode !== 0)
    throw new RolloutError('policy-failed', `no diff could be made of the agent's files: git ${describeEnd(result)}`);
  if (result.cutBytes > 0) throw new RolloutError('policy-failed', `the agent's diff has more than ${maxPatchBytes} bytes`);
  const names = await sandbox.readFile(listPath, { maxBytes: maxPatchBytes, ...optional });
  return { patch: result.stdout.toString('utf8'), paths: parseNames(names) };
}

function parseNames(names: Buffer): ChangedPath[] {
  const words = names.toString('utf8').split('\0');
  return words.slice(0, -1).flatMap((word, at) => (at % 2 === 0 ? [{ status: word.slice(0, 1), path: words[at + 1] ?? '' }] : []));
}
