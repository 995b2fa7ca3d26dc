// The state of a persistent shell as a script: a new shell that reads it is in the same directory, with the same variables, functions,
// aliases, options, traps, umask and limits. Bash itself writes it, in the agent's shell, and reads it in another one. Nothing else runs it.

import { executorFolder } from '../layout.ts';

/** In the executor's folder, which is in no checkpoint. */
export const stateFile = `${executorFolder}/checkpoint`;

/**
 * Aliases come after functions, whose bodies they would change; options that could end the script, and traps that would follow it, come last.
 * A variable that bash refuses to set again is one of its own. It prints the number of the shell's process.
 */
export const saveShell = `{
\\builtin printf '%s\\n' 'shopt -u expand_aliases' 'shopt -s extglob' 'unset -v $(compgen -e)'
\\builtin printf 'cd -- %q\\n' "$PWD"
((\${#DIRSTACK[@]} < 2)) || \\builtin printf 'pushd -n -- %q\\n' "\${DIRSTACK[@]:1}"
(($# == 0)) || { \\builtin printf 'set --'; \\builtin printf ' %q' "$@"; \\builtin printf '\\n'; }
\\builtin declare -p
\\builtin declare -f
\\builtin alias -p
\\builtin umask -p
\\builtin enable -n
\\builtin shopt -p
\\builtin set +o
\\builtin trap -p
} >|${stateFile} 2>/dev/null; \\builtin printf '\\n%s\\n' "$$"`;

export const loadShell = `\\builtin . ${stateFile} >/dev/null 2>&1`;

/**
 * The soft limits of a process as commands for the end of the script, in the units of bash, if they differ from those of a new process.
 * A list: `name in /proc/PID/limits`, the option, and how many bytes a unit has.
 */
const limits = [
  ['Max cpu time', 't', 1],
  ['Max file size', 'f', 1024],
  ['Max data size', 'd', 1024],
  ['Max stack size', 's', 1024],
  ['Max core file size', 'c', 1024],
  ['Max processes', 'u', 1],
  ['Max open files', 'n', 1],
  ['Max address space', 'v', 1024],
] as const;

/** Appends the limits of the shell `$1`, run by another bash. */
export const saveLimits = `
mapfile -t own </proc/self/limits; mapfile -t its </proc/$1/limits
for i in "\${!its[@]}"; do
  [[ "\${its[i]}" != "\${own[i]}" ]] || continue
  read -r value _ <<<"\${its[i]:26}"
  case "\${its[i]}" in
${limits.map(([name, option, unit]) => `  '${name} '*) flag=${option} unit=${unit};;`).join('\n')}
  *) continue;;
  esac
  [[ $value == unlimited ]] || value=$((value / unit))
  printf 'ulimit -S -%s %s\\n' "$flag" "$value"
done >>${stateFile}`;
