// The bash script that prepares the repository of a task in a sandbox in which nothing of the agent has run: it goes to the base commit,
// puts the bug in where a patch does so, and removes everything that a later commit left in the repository.

/**
 * Variables: `workdir`, `base`, `hidden` (paths, one per line), `hide` (1: remove the future), `patch` (1: standard input is the patch with
 * the bug). Exit code 3: the task does not fit its image.
 *
 * - The images of SWE-bench have one commit of the environment on top of the base commit, which is kept. Changes and untracked files that an
 *   image has are committed, so that they are not part of the agent's diff, and can be restored. Nested repositories are left alone.
 * - Git must notice every change of a file: modes count, and no entry of the index is taken as unchanged.
 * - Tags and branches that are not part of the history of the start go, then reflogs, remotes, stashes, hooks and work trees. `repack -a -d`
 *   leaves only objects that can still be reached, and `prune` removes the loose ones.
 */
export const prepareScript = `set -e
give_up() { echo "$1" >&2; exit 3; }
type -P git > /dev/null || give_up 'there is no git in the image'
cd -- "$workdir" 2> /dev/null || give_up "there is no folder $workdir in the image"
git rev-parse --git-dir > /dev/null 2>&1 || give_up "$workdir is not a git repository"
base=$(git rev-parse -q --verify "$base^{commit}") || give_up "the repository in $workdir has no commit $base"
author=(-c user.name=start -c user.email=start@localhost -c commit.gpgSign=false)

if [ "$(git rev-parse HEAD)" != "$base" ] && ! { [ "$(git rev-parse -q --verify HEAD~1)" = "$base" ] && [ "$(git log -1 --format=%s)" = SWE-bench ]; }; then
  git checkout -q -f --detach "$base"
fi
git checkout -q --detach
if [ "$patch" = 1 ]; then git apply --whitespace=nowarn - || give_up 'setup_patch does not apply to the base commit'; fi
while IFS= read -r path; do [ -z "$path" ] || rm -rf -- "$path"; done <<< "$hidden"
git config core.fileMode true
git config core.sparseCheckout false
if git ls-files -v | grep -q '^[a-zS]'; then git read-tree HEAD; fi
git add -u
git ls-files -z --others --exclude-standard | while IFS= read -r -d '' path; do
  [ "\${path%/}" != "$path" ] || printf '%s\\0' "$path"
done | git update-index --add -z --stdin
if [ "$patch" = 1 ]; then
  git update-ref --no-deref HEAD "$(git "\${author[@]}" commit-tree "$(git write-tree)" -m 'start of the task')"
elif ! git diff --cached --quiet HEAD; then
  git "\${author[@]}" commit -q --no-verify -m 'environment of the task'
fi

hide_future() { # of the repository in the folder $1, all but the history of its HEAD
  local dir=$1 start ref name; local -A kept=()
  start=$(git --git-dir="$dir" rev-parse HEAD)
  while IFS= read -r ref; do kept[$ref]=1; done < <(git --git-dir="$dir" for-each-ref --merged="$start" --format='%(refname)' refs/tags)
  git --git-dir="$dir" for-each-ref --format='%(refname)' | while IFS= read -r ref; do
    [ -n "\${kept[$ref]}" ] || printf 'option no-deref\\ndelete %s\\n' "$ref"
  done | git --git-dir="$dir" update-ref --stdin
  git --git-dir="$dir" remote | while IFS= read -r name; do git --git-dir="$dir" remote remove "$name"; done
  rm -rf -- "$dir"/{logs,hooks,worktrees,rr-cache,refs/stash,refs/original,ORIG_HEAD,FETCH_HEAD,MERGE_HEAD,CHERRY_PICK_HEAD,REVERT_HEAD,REBASE_HEAD,BISECT_LOG,COMMIT_EDITMSG,MERGE_MSG,SQUASH_MSG,TAG_EDITMSG}
  rm -rf -- "$dir"/rebase-* "$dir"/sequencer "$dir"/objects/info/commit-graph* "$dir"/objects/pack/*.keep
  git --git-dir="$dir" pack-refs --all --prune
  git --git-dir="$dir" -c repack.writeBitmaps=false -c core.logAllRefUpdates=false repack -a -d -q
  rm -f -- "$dir/objects/info/alternates"
  git --git-dir="$dir" prune --expire=now
}
if [ "$hide" = 1 ]; then
  dir=$(git rev-parse --absolute-git-dir)
  hide_future "$dir"
  [ ! -d "$dir/modules" ] || while IFS= read -r -d '' head; do hide_future "\${head%/HEAD}"; done < <(find "$dir/modules" -name HEAD -type f -not -path '*/logs/*' -print0)
  start=$(git rev-parse HEAD)
  git -c core.logAllRefUpdates=false update-ref refs/heads/main "$start"
  git -c core.logAllRefUpdates=false symbolic-ref HEAD refs/heads/main
  rm -rf -- "$dir/logs"
fi
git update-index -q --refresh || true`;
