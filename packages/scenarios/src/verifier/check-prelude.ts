// The bash code that runs before a check script, in the same shell. It reads a secret and the script from standard input, cleans the
// environment, defines the functions of a check, and runs the script.

/** What a check reports, after the secret. `reward` or `end` comes once, when it ends. */
export const reports = { fault: 'fault', missing: 'missing', misplaced: 'misplaced', reward: 'reward', end: 'end' } as const;

/** Expects the folder of the check in `millrace_folder`. */
const cleanVariables = `for millrace_name in "\${!PYTHON@}"; do unset "$millrace_name"; done
export PYTHONNOUSERSITE=1 PYTHONSAFEPATH=1 PYTHONPATH=$millrace_folder/python
set -f; IFS=:; millrace_path=
for millrace_name in $PATH; do
  case $millrace_name in /workspace|/workspace/*|*/../*|*/..) ;; /*) millrace_path+=:$millrace_name ;; esac
done
set +f; unset IFS; PATH=\${millrace_path#:}`;

/** Becomes the Python program of its second argument, with the environment of a check. */
export const pythonPrelude = `set +p
millrace_folder=$1
${cleanVariables}
type -P python3 >/dev/null || exit 127
exec python3 -I -c "$2" "$1"`;

/**
 * - The shell itself keeps the last reward, and reports it once, when it ends. Text that bash evaluates as arithmetic can run commands in
 *   subshells, and those know the secret; but they cannot end the shell without its own report, and two reports are no reward. Arithmetic in
 *   the shell itself assigns only integers, and the kept reward starts with `=`.
 * - Standard output is the channel of reports. It is a socket, which no process can open again through /proc. Programs that the check starts
 *   without `judged` inherit it, and do not have the secret. All other output goes to standard error. If a report cannot be written because
 *   such a program has shut the socket down, the check ends with SIGPIPE.
 * - `set -n` makes a subshell parse the script without running it. Only if that fails is bash started to say what is wrong.
 * - `judged` passes a command to the worker, which runs it in another sandbox and writes its output and exit code to files. The name of the
 *   request goes through a named pipe that this shell keeps open, and the exit code comes back through another one.
 * - Python programs of the check import nothing from the working folder, the home folder or the agent's PYTHONPATH.
 * - Folders of the agent, and relative ones, are removed from the PATH.
 */
const shellStart = `set +p
IFS= read -rd '' millrace_secret && IFS= read -rd '' millrace_check || exit 125
exec {millrace_channel}>&1 1>&2 </dev/null
millrace_requests=; if [ -p "$1/requests" ]; then exec {millrace_requests}<>"$1/requests"; fi
millrace_folder=$1; shift
millrace_report() { printf '%s %s\\n' "$millrace_secret" "$1" >&"$millrace_channel" || kill -PIPE "$$"; }
${cleanVariables}
(shopt -s extglob; eval "set -n; $millrace_check") 2>/dev/null || millrace_syntax=$(bash --norc -p -O extglob -n <<< "$millrace_check" 2>&1) || {
  millrace_report "${reports.fault} $millrace_syntax"; exit 125
}
millrace_reward= millrace_cleanup=
reward() {
  if [[ $BASHPID != "$$" ]]; then millrace_report ${reports.misplaced}; echo 'reward: it does not count in a subshell or a pipeline' >&2; return 1; fi
  millrace_reward="=\${1-}"
}
millrace_send() {
  if [[ $BASHPID != "$$" ]]; then return; fi
  case $millrace_reward in
    '') millrace_report ${reports.end} ;;
    =*) millrace_reward=\${millrace_reward//[$'\\n\\r']/ }; millrace_report "${reports.reward} \${millrace_reward#=}" ;;
    *) millrace_report ${reports.misplaced} ;;
  esac
}
millrace_status() { return "$1"; }
millrace_end() {
  millrace_code=$?
  set +eu +o posix
  exit() { millrace_send; builtin exit "$@"; }
  millrace_status "$millrace_code"; eval "$millrace_cleanup"
  millrace_send
  builtin exit "$millrace_code"
}
trap() {
  if [[ \${1-} == -- ]]; then shift; fi
  if (( $# < 2 )) || [[ $1 == -[lp] ]]; then builtin trap "$@"; return; fi
  local millrace_action=$1; shift
  for millrace_name; do
    if [[ $millrace_name == @(EXIT|exit|SIGEXIT|0) && $BASHPID == "$$" ]]; then millrace_cleanup=\${millrace_action#-}
    else builtin trap -- "$millrace_action" "$millrace_name" || return; fi
  done
}
command_not_found_handle() { millrace_report "${reports.missing} $1"; echo "$1: command not found" >&2; return 127; }`;

/** Functions that run programs of the agent in their own sandbox. They pass on nothing of the check but what is named. */
const judgedFunctions = `millrace_run() (
  at=$millrace_folder/judged-$BASHPID kind=$1 files=() variables=()
  shift
  [ -n "$millrace_requests" ] || { echo 'judged: the check script does not name it' >&2; exit 125; }
  while :; do
    case \${1-} in
      --env) case $2 in *=*) variables+=("$2") ;; *) variables+=("$2=\${!2-}") ;; esac; shift; shift ;;
      --file) case $2 in /*) files+=("$2") ;; *) files+=("$PWD/$2") ;; esac; shift; shift ;;
      *) break ;;
    esac
  done
  mkfifo "$at.reply" && exec {reply}<>"$at.reply" || exit 125
  [ /dev/stdin -ef /dev/null ] || cat > "$at.in"
  printf '%s\\0' "$kind" "$PWD" "$#" "$@" "\${#variables[@]}" "\${variables[@]}" "\${#files[@]}" "\${files[@]}" > "$at.request"
  printf '%s\\n' "\${at##*/}" >&"$millrace_requests"
  read -r code <&"$reply"
  cat "$at.out"; cat "$at.err" >&2; rm -f "$at".*
  exit "$code"
)
judged() { millrace_run command "$@"; }
judged_tests() { millrace_run tests "$@"; }
stop_judged() { judged /bin/bash -c 'kill -KILL -1' >/dev/null 2>&1 </dev/null; return 0; }`;

/**
 * Comparisons that take what the agent wrote as text: never as a pattern, an expression or an option. Bash matches the end of a long text in
 * quadratic time, so ends are cut in pieces.
 */
const comparisons = `millrace_trim() {
  local millrace_ends size=512; REPLY=$1
  millrace_ends=\${REPLY%%[![:space:]]*}; REPLY=\${REPLY:\${#millrace_ends}}
  while (( \${#REPLY} > size )) && [[ \${REPLY:\${#REPLY}-size} != *[![:space:]]* ]]; do REPLY=\${REPLY:0:\${#REPLY}-size}; done
  millrace_ends=\${REPLY:\${#REPLY} > size ? \${#REPLY} - size : 0}; millrace_ends=\${millrace_ends##*[![:space:]]}
  REPLY=\${REPLY:0:\${#REPLY}-\${#millrace_ends}}
}
is_text() { local REPLY value; millrace_trim "$1"; value=$REPLY; millrace_trim "$2"; [[ $value == "$REPLY" ]]; }
is_match() { local LC_ALL=C.UTF-8 regex="^($2)$"; [[ $1 =~ $regex ]]; }
millrace_number='^[+-]?([0-9]{1,300}([.][0-9]{0,300})?|[.][0-9]{1,300})([eE][+-]?[0-9]{1,3})?$'
millrace_compare() {
  local LC_ALL=C
  value=$1 low=$2 high=$3 awk 'BEGIN { v = ENVIRON["value"] + 0; exit !(ENVIRON["low"] + 0 <= v && v <= ENVIRON["high"] + 0) }'
}
in_range() {
  local REPLY LC_ALL=C; millrace_trim "$1"
  [[ $REPLY =~ $millrace_number ]] && millrace_compare "$REPLY" "$2" "$3"
}
is_number() {
  local REPLY LC_ALL=C; millrace_trim "$1"
  [[ $REPLY =~ $millrace_number ]] || return 1
  if [[ -z \${3-} && $REPLY =~ ^[+-]?[0-9]+$ && $2 =~ ^[+-]?[0-9]+$ ]]; then
    local value=\${REPLY#+} want=\${2#+} sign= other=
    case $value in -*) sign=- value=\${value#-} ;; esac
    case $want in -*) other=- want=\${want#-} ;; esac
    value=\${value#"\${value%%[!0]*}"} want=\${want#"\${want%%[!0]*}"}
    [[ $value == "$want" && ( -z $value || $sign == "$other" ) ]]
  else
    value=$REPLY want=$2 tolerance=\${3:-0} awk 'BEGIN { d = ENVIRON["value"] - ENVIRON["want"]; if (d < 0) d = -d; exit !(d <= ENVIRON["tolerance"] + 0) }'
  fi
}
same_file() { [ -f "$1" ] && [ -f "$2" ] && cmp -s -- "$1" "$2"; }`;

export const checkPrelude = `${shellStart}
${judgedFunctions}
${comparisons}
readonly millrace_secret millrace_channel millrace_requests millrace_folder millrace_number
readonly -f reward judged judged_tests stop_judged trap millrace_report millrace_send millrace_end millrace_run command_not_found_handle
builtin trap millrace_end EXIT
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
