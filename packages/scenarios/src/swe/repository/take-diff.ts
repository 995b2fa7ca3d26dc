// Makes the diff of what the agent changed, in a sandbox in which nothing of the agent runs, with the git of the image.

import { RolloutError } from '@millrace/protocol';
import type { Sandbox } from '@millrace/sandbox';
import { describeEnd } from '../../verifier/verifier.ts';
import type { Changes } from './changes.ts';
import { gitEnv } from './prepare.ts';

/** One changed path, by git's letter: added, modified, deleted, or of another type (a link). */
export interface ChangedPath {
  readonly status: string;
  readonly path: string;
}

export interface Diff {
  /** Files need not be UTF-8. */
  readonly patch: Buffer;
  readonly paths: readonly ChangedPath[];
}

interface DiffOptions {
  readonly workdir: string;
  /** Paths that the agent's sandbox did not have: what it put there is no part of the diff. */
  readonly hidden: readonly string[];
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

const maxPatchBytes = 16 << 20;
const listPath = '/tmp/millrace-unchanged';

/**
 * Makes the files the agent's: what it no longer has is removed, and what it changed is unpacked. Tracked files are compared whatever the rules
 * say. New files count unless the rules of the start ignore them, so that an agent cannot add or hide files by changing the rules: those are
 * kept aside, in a work tree that holds nothing else. Nested repositories, submodules, and files whose names are not UTF-8 are left out.
 */
const script = `set -e
cd -- "$workdir"
others=/tmp/millrace-others; rules=/tmp/millrace-rules
declare -A kept=() ignored=()
while IFS= read -r -d '' path; do kept[$path]=1; done < "$list"
mkdir -p -- "$rules"
find . -name .git -prune -o -name .gitignore -type f -print0 | tar --create --null --files-from=- --file=- | tar --extract --file=- -C "$rules"
is_text() { [[ $1 != *[$'\\x80'-$'\\xff']* ]] || printf %s "$1" | iconv -f UTF-8 -t UTF-8 > /dev/null 2>&1; }
find . -name .git -prune -o ! -type d -print0 | while IFS= read -r -d '' path; do
  [ -n "\${kept[\${path#./}]}" ] || ! is_text "$path" || { rm -f -- "$path" 2> /dev/null && rmdir -p -- "$(dirname -- "$path")" 2> /dev/null; } || true
done
mkdir -p -- "$workdir"; cd -- "$workdir"
cat > "$archive"
tar --extract --file="$archive" --no-same-owner
rm -f -- "$archive"
git add -u
git ls-files -z --others > "$others"
dir=$(git rev-parse --absolute-git-dir)
( cd -- "$rules"; git --git-dir="$dir" --work-tree=. check-ignore --no-index -z --stdin < "$others" > "$list" || [ $? = 1 ] )
while IFS= read -r -d '' path; do ignored[$path]=1; done < "$list"
while IFS= read -r -d '' path; do
  [ -n "\${ignored[$path]}" ] || [ "\${path%/}" != "$path" ] || printf '%s\\0' "$path"
done < "$others" | git update-index --add -z --stdin
paths=(.)
while IFS= read -r path; do case "$path" in "$workdir"/*) paths+=(":(exclude,literal)\${path#"$workdir"/}");; esac; done <<< "$hidden"
git diff --cached --name-status -z --no-renames HEAD -- "\${paths[@]}" > "$list"
git diff --cached --binary --full-index --no-color --no-ext-diff --no-textconv --no-renames HEAD -- "\${paths[@]}"`;

const commandNotFound = 127;

/** Throws `policy-failed` if the agent's files cannot be unpacked or the diff is too large, and `task-failed` if the image lacks a program. */
export async function takeDiff(sandbox: Sandbox, changes: Changes, { workdir, hidden, timeoutMs, signal }: DiffOptions): Promise<Diff> {
  const optional = signal ? { signal } : {};
  await sandbox.writeFile(listPath, changes.unchanged, optional);
  const env = { ...gitEnv, workdir, hidden: hidden.join('\n'), list: listPath, archive: '/tmp/millrace-changes.tar' };
  const options = { env, stdin: changes.archive, cwd: '/', timeoutMs, capBytes: maxPatchBytes, ...optional };
  const result = await sandbox.exec(['/bin/bash', '-c', script], options);
  // Nothing of the agent's is on the PATH of this sandbox.
  if (result.exitCode === commandNotFound)
    throw new RolloutError('task-failed', `the image lacks a program that taking the diff needs: git ${describeEnd(result)}`);
  if (result.exitCode !== 0)
    throw new RolloutError('policy-failed', `no diff could be made of the agent's files: git ${describeEnd(result)}`);
  if (result.cutBytes > 0) throw new RolloutError('policy-failed', `the agent's diff has more than ${maxPatchBytes} bytes`);
  const names = await sandbox.readFile(listPath, { maxBytes: maxPatchBytes, ...optional });
  return { patch: result.stdout, paths: parseNames(names) };
}

function parseNames(names: Buffer): ChangedPath[] {
  const words = names.toString('utf8').split('\0');
  return words.slice(0, -1).flatMap((word, at) => (at % 2 === 0 ? [{ status: word.slice(0, 1), path: words[at + 1] ?? '' }] : []));
}
