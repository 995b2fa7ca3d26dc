// The bash code that runs before a check script, in the same shell. It reads a secret and the script from standard input, cleans the
// environment, defines the functions of a check, and runs the script.

/**
 * - Standard output is the channel of the reward. It is a socket, which no process can open again through /proc. Programs that the check starts
 *   without `judged` inherit it, and do not have the secret that every report begins with. All other output goes to standard error.
 *   If a report cannot be written because such a program has shut the socket down, the check ends with SIGPIPE.
 * - `judged` never returns 126 or more, so that a program of the agent that is missing or dies does not look like a broken check.
 * - Python programs of the check import nothing from the working folder, the home folder or PYTHONPATH. `judged` restores their variables.
 * - Folders of the agent, and relative ones, are removed from the PATH.
 */
export const checkPrelude = `set +p
IFS= read -rd '' millrace_secret && IFS= read -rd '' millrace_check || exit 125
exec {millrace_channel}>&1 1>&2 </dev/null
millrace_env=(HOME=/workspace "PATH=$PATH")
for millrace_name in "\${!PYTHON@}"; do
  millrace_env+=("$millrace_name=\${!millrace_name}"); unset "$millrace_name"
done
export PYTHONNOUSERSITE=1 PYTHONSAFEPATH=1
set -f; IFS=:; millrace_path=
for millrace_name in $PATH; do
  case $millrace_name in /workspace|/workspace/*|*/../*|*/..) ;; /*) millrace_path+=:$millrace_name ;; esac
done
set +f; unset IFS; PATH=\${millrace_path#:}
reward() { (printf '%s %s\\n' "$millrace_secret" "$1" >&"$millrace_channel") || kill -PIPE "$$"; }
judged() {
  (
    exec {millrace_channel}>&-
    unset PYTHONNOUSERSITE PYTHONSAFEPATH "\${!GIT_CONFIG@}"
    export "\${millrace_env[@]}"
    exec -- "$@"
  ) || return "$(($? < 126 ? $? : 125))"
}
stop_judged() {
  [ "$BASHPID" = "$$" ] || { echo 'stop_judged: call it outside of subshells and pipes' >&2; return 1; }
  kill -KILL -1 2>/dev/null; return 0
}
readonly millrace_secret millrace_channel millrace_env
readonly -f reward judged stop_judged
eval "$millrace_check"`;
