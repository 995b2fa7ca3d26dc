// The bash code that runs before a check script, in the same shell. It reads a secret and the script from standard input, cleans the
// environment, defines the functions of a check, and runs the script.

/** What the prelude reports besides rewards, after the secret. */
export const faultReport = 'fault';
export const missingReport = 'missing';

/**
 * - Standard output is the channel of the reward. It is a socket, which no process can open again through /proc. Programs that the check starts
 *   without `judged` inherit it, and do not have the secret that every report begins with. All other output goes to standard error.
 *   If a report cannot be written because such a program has shut the socket down, the check ends with SIGPIPE.
 * - `judged` passes a command to the worker, which runs it in another sandbox and writes its output and exit code to files. The name of the
 *   request goes through a named pipe that this shell keeps open, and the exit code comes back through another one.
 * - Python programs of the check import nothing from the working folder, the home folder or the agent's PYTHONPATH.
 * - Folders of the agent, and relative ones, are removed from the PATH.
 */
export const checkPrelude = `set +p
IFS= read -rd '' millrace_secret && IFS= read -rd '' millrace_check || exit 125
exec {millrace_channel}>&1 1>&2 </dev/null {millrace_requests}<>"$1/requests"
millrace_folder=$1; shift
millrace_report() { (printf '%s %s\\n' "$millrace_secret" "$1" >&"$millrace_channel") || kill -PIPE "$$"; }
for millrace_name in "\${!PYTHON@}"; do unset "$millrace_name"; done
export PYTHONNOUSERSITE=1 PYTHONSAFEPATH=1 PYTHONPATH=$millrace_folder/python
set -f; IFS=:; millrace_path=
for millrace_name in $PATH; do
  case $millrace_name in /workspace|/workspace/*|*/../*|*/..) ;; /*) millrace_path+=:$millrace_name ;; esac
done
set +f; unset IFS; PATH=\${millrace_path#:}
millrace_syntax=$(bash --norc -p -O extglob -n <<< "$millrace_check" 2>&1) || { millrace_report "${faultReport} $millrace_syntax"; exit 125; }
reward() { millrace_report "reward $1"; }
command_not_found_handle() { millrace_report "${missingReport} $1"; echo "$1: command not found" >&2; return 127; }
judged() (
  at=$millrace_folder/judged-$BASHPID
  mkfifo "$at.reply" && exec {reply}<>"$at.reply" || exit 125
  [ /dev/stdin -ef /dev/null ] || cat > "$at.in"
  {
    printf '%s\\0' "$PWD" "$#" "$@"
    for name in $(compgen -e); do
      case $name in HOME|PATH|PWD|OLDPWD|SHLVL|_|ENV|BASH_ENV|GIT_CONFIG*|PYTHON*) ;; *) printf '%s=%s\\0' "$name" "\${!name}" ;; esac
    done
  } > "$at.request"
  printf '%s\\n' "\${at##*/}" >&"$millrace_requests"
  read -r code <&"$reply"
  cat "$at.out"; cat "$at.err" >&2; rm -f "$at".*
  exit "$code"
)
stop_judged() { judged /bin/bash -c 'kill -KILL -1' >/dev/null 2>&1 </dev/null; return 0; }
readonly millrace_secret millrace_channel millrace_requests millrace_folder
readonly -f reward judged stop_judged millrace_report command_not_found_handle
eval "$millrace_check"`;

/**
 * Python before 3.11 has no safe path: it puts the working folder, or that of the script, first. This module, which Python imports at its
 * start, removes them before the first import of the program.
 */
export const pythonGuard = `import sys
class MillraceGuard:
    @staticmethod
    def find_spec(name, path=None, target=None):
        sys.path[:] = [one for one in sys.path if one and one != '/workspace' and not one.startswith('/workspace/')]
if not getattr(sys.flags, 'safe_path', False):
    sys.meta_path.insert(0, MillraceGuard)
`;
