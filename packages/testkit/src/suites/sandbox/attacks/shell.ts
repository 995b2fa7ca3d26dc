// Attacks on the shell: commands that break the protocol between bash and the executor. A broken shell is noticed and
// replaced, and the reply says so. None may take longer than a moment to notice.

import assert from 'node:assert/strict';
import type { Sandbox } from '@millrace/sandbox';
import type { Attack } from './attack.ts';

const promptMs = 4000;
/** Much longer than a moment, and shorter than a test. */
const timeoutMs = 8000;

export const shellAttacks: readonly Attack[] = [
  ...['INT', 'QUIT', 'TSTP', 'TTIN', 'KILL'].map((signal) =>
    ends(`runs a program that dies or stops of SIG${signal}`, `bash -c 'kill -${signal} $$'; echo after`),
  ),
  ends('stops its own shell', 'kill -STOP $$; echo after'),
  ends('interrupts its own shell', 'kill -INT $$; sleep 0.1; echo after'),
  ...Object.entries({
    'makes the dot an alias': 'alias .=true',
    'makes the dot an alias that fails': 'alias .="echo caught; false"',
    'makes builtin an alias': 'alias builtin=true printf=true',
    'replaces the dot by a function': 'function . { true; }',
    'replaces builtin by a function': 'builtin() { true; }',
    'replaces printf and exit by functions': 'printf() { true; }; exit() { true; }; trap() { true; }',
    'disables the dot': 'enable -n .',
    'disables builtin': 'enable -n builtin',
    'disables every builtin': 'enable -n . source builtin printf command exec eval trap kill enable',
    'sets the character of the dot to suspend': 'stty susp . </dev/tty',
    'sets letters to interrupt': 'stty intr b quit p </dev/tty',
    'sets a letter to end of file': 'stty eof b eol . erase n </dev/tty',
    'sets the terminal to wait for many bytes': 'stty -icanon min 255 time 0 </dev/tty',
    'sets the terminal to drop line ends': 'stty igncr -icrnl inlcr </dev/tty',
    'sets the dot to stop output': 'stty ixon stop . </dev/tty',
    'sets the terminal to upper case': 'stty iuclc olcuc xcase </dev/tty',
    'skips every command by a trap': 'shopt -s extdebug; trap false DEBUG',
    'prints in a trap before every command': 'set -T; trap "echo trapped" DEBUG; trap "echo returned" RETURN; trap "echo error" ERR',
    'turns on every option that stops scripts': 'set -euo pipefail',
    'turns off execution': 'set -o noexec',
    'turns on line editing': 'set -o vi; set -o emacs; set -o history; set -H; set -v',
    'makes the variables of the prompt read-only': 'readonly PS1=x PS2=y PROMPT_COMMAND="echo prompt" PS4=z',
    'lets the prompt read the terminal': 'PROMPT_COMMAND="read -t 1 x </dev/tty"',
    'lets the prompt end the shell': 'PROMPT_COMMAND="exit 3"',
    'unsets what it can': 'unset PATH HOME PWD IFS SHELL BASH_VERSION; unset -f command_not_found_handle; IFS=.; hash -r',
    'sets IFS to the letters of commands': 'IFS="./pbuiltn "; set -f',
    'becomes POSIX': 'set -o posix; POSIXLY_CORRECT=1',
    'restricts itself': 'set -r; PATH=/nowhere',
    'sends its output away': 'exec >/dev/null 2>&1 </dev/null',
    'closes its files': 'exec 0<&- 1>&- 2>&-; for fd in {3..30} 255; do eval "exec $fd>&-"; done',
    'may open no more files': 'ulimit -n 4',
    'may write no more files': 'ulimit -f 0',
    'may use no more memory': 'ulimit -v 1000',
    'may use no more time': 'ulimit -t 1; while :; do :; done',
    'steals what is typed':
      'tty=$(readlink /proc/$$/fd/255 || tty </dev/tty); (setsid bash -c "while :; do head -c 1 $tty; done" >/dev/null 2>&1 &)',
    'floods the terminal': '(timeout 2 yes >/dev/tty &) ; sleep 0.1',
    'forges an end marker with another nonce': "printf '\\e]8517;aaaaaaaaaaaa;0\\a'; printf '\\e]8517;'; echo",
    'replaces the file of its commands': 'cd /run/millrace/own && rm -f command && mkfifo command; cd ~',
    'makes the folder of its commands read-only': 'chmod 500 /run/millrace/own',
  }).map(([name, shell]) => breaks(name, shell)),
];

/** The command ends in a moment, and the shell keeps its variables. */
function ends(name: string, shell: string): Attack {
  return { name, family: 'shell', agent: { shell }, timeoutMs, holds: { ends: ['exited'], and: (sandbox) => assertUsable(sandbox) } };
}

/** The command may end the shell, and a later one that does not run says so. */
function breaks(name: string, shell: string): Attack {
  return { name, family: 'shell', agent: { shell }, timeoutMs, holds: { and: (sandbox) => assertUsable(sandbox) } };
}

/** Of three commands, each runs or reports that it did not, and the last one runs. */
async function assertUsable(sandbox: Sandbox): Promise<void> {
  const seen: unknown[] = [];
  for (const count of [1, 2, 3]) {
    const startMs = performance.now();
    const { end, output, exitCode, cutBytes } = await sandbox.runShell(`echo $((40 + ${count}))`, { timeoutMs });
    const ms = performance.now() - startMs;
    seen.push({ end, output, exitCode, ms: Math.round(ms) });
    // A background program may print so much meanwhile that the number is in what was cut.
    const ran = output.includes(`${40 + count}\n`) || (cutBytes > 0 && exitCode === 0);
    assert.ok(
      ran || end === 'shell-broken' || end === 'shell-exited',
      `a command that did not run was not reported: ${JSON.stringify(seen)}`,
    );
    assert.ok(ms < promptMs, `too slow: ${JSON.stringify(seen)}`);
    if (count === 3) assert.ok(ran && end === 'exited', `the shell does not recover: ${JSON.stringify(seen)}`);
  }
}
