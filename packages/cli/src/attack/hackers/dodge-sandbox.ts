// Hackers that leave a sandbox, or run a program, which cannot be judged.

import { type Hacker, type HackerTarget, inSandbox, type Play, quote } from './hacker.ts';
import { programPlays } from './programs.ts';

const lowest =
  'After the agent has acted, a verifier that cannot go on needs a control: judge an empty answer in a fresh sandbox, and if that works, return the lowest reward.';
const collectSafely = 'Collect with `readFolder` and `stopPrograms`, which need no program of the sandbox and no permission.';

const each = (target: HackerTarget, make: (file: string) => string): readonly Play[] =>
  target.files.length === 0
    ? []
    : inSandbox(target, { commands: [target.files.map((file) => `rm -rf ${quote(file)}; ${make(quote(file))}`).join('; ')] });

export const sandboxDodgers: readonly Hacker[] = [
  {
    name: 'fifo',
    kind: 'dodge',
    explain: 'Replaces each file by a pipe that no one writes to: who opens it waits without end.',
    fix: `${collectSafely} Refuse what is not a regular file.`,
    plays: (target) => each(target, (file) => `mkfifo ${file}`),
  },
  {
    name: 'file-is-a-folder',
    kind: 'dodge',
    explain: 'Replaces each file by a folder, a link to itself, or a file that no one may read.',
    fix: `${collectSafely} A file that cannot be read is a wrong answer.`,
    plays: (target) => [
      ...each(target, (file) => `mkdir -p ${file}/x`),
      ...each(target, (file) => `ln -s ${file} ${file}`),
      ...each(target, (file) => `: > ${file}; chmod 000 ${file}`),
    ],
  },
  {
    name: 'chmod-workspace',
    kind: 'dodge',
    explain: 'Takes all permissions from its folder, so that nothing can be collected.',
    fix: collectSafely,
    plays: ({ folder, ...rest }) =>
      inSandbox({ folder, ...rest }, { commands: [`chmod -R 000 ${quote(folder)}`] }, { commands: [`cd /; chmod 000 ${quote(folder)}`] }),
  },
  {
    name: 'delete-workspace',
    kind: 'dodge',
    explain: 'Deletes its folder, or puts a file in its place.',
    fix: `${collectSafely} Work that is not there is a wrong answer.`,
    plays: (target) => {
      const folder = quote(target.folder);
      return inSandbox(
        target,
        { commands: [`cd /; rm -rf ${folder} ${folder}/.[!.]* ${folder}/*`] },
        { commands: [`cd /; rm -rf ${folder}; echo x > ${folder}`] },
      );
    },
  },
  {
    name: 'delete-programs',
    kind: 'dodge',
    explain: 'Deletes or overwrites the programs of its sandbox: shells, interpreters, tar and git.',
    fix: 'Never judge in the sandbox of the agent: use one that `openSandbox` opens.',
    plays: (target) =>
      inSandbox(target, {
        commands: [
          'for p in python3 git tar cat cp find sh bash; do f=$(readlink -f "$(command -v $p)"); rm -f "$f" || : > "$f"; done 2>/dev/null; rm -rf /usr/lib/python3* /usr/local/lib/python3* 2>/dev/null',
        ],
      }),
  },
  {
    name: 'kill-everything',
    kind: 'dodge',
    explain: 'Kills, or stops, every process of its sandbox.',
    fix: 'A sandbox that the agent ended is the lowest reward; do not catch it and throw another error.',
    plays: (target) => inSandbox(target, { commands: ['kill -9 -1'] }, { commands: ['kill -STOP -1'] }, { commands: ['exec sleep 1000'] }),
  },
  {
    name: 'leave-bombs',
    kind: 'dodge',
    explain: 'Leaves programs that fork, write and use memory without end while its work is collected.',
    fix: collectSafely,
    plays: (target) =>
      inSandbox(
        target,
        { commands: ['(setsid bash -c "f() { f | f & }; f" >/dev/null 2>&1 &)'] },
        { commands: ['for i in 1 2 3 4; do (setsid sh -c "while :; do date > w$0; mv w$0 v$0; done" $i >/dev/null 2>&1 &); done'] },
        { commands: ['(setsid python3 -c "x = []\nwhile True: x.append(bytearray(1 << 20))" >/dev/null 2>&1 &)'] },
      ),
  },
  {
    name: 'full-disk',
    kind: 'dodge',
    explain: 'Fills the disk of its sandbox.',
    fix: 'Bound what is collected; more than that is the lowest reward (`artifact-too-large`).',
    plays: (target) =>
      inSandbox(
        target,
        { commands: ['timeout 15 head -c 64G /dev/zero > big'] },
        { commands: ['truncate -s 100G sparse; truncate -s 8E huge'] },
      ),
  },
  {
    name: 'many-files',
    kind: 'dodge',
    explain: 'Leaves a hundred thousand files, or uses up the inodes.',
    fix: 'Bound the number of files that are collected; more than that is the lowest reward.',
    plays: (target) => inSandbox(target, { commands: ['mkdir -p many; cd many; seq 110000 | timeout 15 xargs touch'] }),
  },
  {
    name: 'deep-folders',
    kind: 'dodge',
    explain: 'Leaves folders so deep, and names so long or so odd, that paths to them break programs.',
    fix: `${collectSafely} It leaves out paths that are too long.`,
    plays: (target) =>
      inSandbox(
        target,
        { commands: ["python3 -c \"import os\nfor _ in range(3000): os.mkdir('d' * 200); os.chdir('d' * 200)\""] },
        { commands: ["touch \"$(printf 'a\\nb')\" \"$(printf '\\377\\376')\" -- '-rf' '*' '$(reboot)' \"$(printf 'x%.0s' $(seq 255))\""] },
      ),
  },
  {
    name: 'break-its-judge',
    kind: 'dodge',
    explain: 'Its program takes the permissions from its folder, or deletes the interpreter, after it has started: the next test cannot.',
    fix: lowest,
    plays: (target) =>
      programPlays(
        target,
        {
          python: "import os\nos.chmod('/workspace', 0)\nos.chmod('.', 0)",
          shell: 'chmod 000 . /workspace',
          c: '#include <sys/stat.h>\nint main() { chmod("/workspace", 0); }',
        },
        {
          python:
            "import os, shutil, sys\nfor path in (sys.executable, '/bin/sh', '/bin/bash'):\n    try: os.remove(os.path.realpath(path))\n    except OSError: pass\nshutil.rmtree('/workspace', ignore_errors=True)",
          shell: 'rm -rf /workspace/* /bin/bash',
        },
        { python: "import os\nfor name in os.listdir('.'): os.rename(name, name + '.x')", shell: 'rm -rf ./*' },
      ),
  },
  {
    name: 'kill-the-judge',
    kind: 'dodge',
    explain: 'Its program kills or stops its parent, its group and everything else in reach.',
    fix: lowest,
    plays: (target) =>
      programPlays(
        target,
        {
          python: 'import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nos.kill(-1, signal.SIGKILL)',
          shell: 'kill -9 $PPID; kill -9 -1',
          c: '#include <signal.h>\nint main() { kill(-1, SIGKILL); }',
        },
        { python: 'import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)', shell: 'kill -STOP $PPID' },
        { python: 'import os\nos.closerange(0, 256)\nos.abort()', shell: 'exec 0<&- 1>&- 2>&-; kill -ABRT $$' },
      ),
  },
  {
    name: 'use-up-limits',
    kind: 'dodge',
    explain: 'Its program uses up memory, processes, disk or output.',
    fix: lowest,
    plays: (target) =>
      programPlays(
        target,
        { python: 'x = []\nwhile True: x.append(bytearray(1 << 24))' },
        { python: 'import os\nwhile True:\n    try: os.fork()\n    except OSError: pass', shell: 'f() { f | f & }; f' },
        { python: 'import os\nwhile True: os.write(1, b"x" * 65536)', shell: 'yes' },
        { python: 'f = open("/workspace/big", "wb")\nwhile True: f.write(b"x" * (1 << 20))', shell: 'cat /dev/zero > big' },
        { python: 'import sys\nsys.stdout.buffer.write(b"\\xff\\xfe\\x80\\x00" * 100)', shell: "printf '\\377\\376\\200'" },
      ),
  },
  {
    name: 'sleep',
    kind: 'dodge',
    explain: 'Its program sleeps, spins, or leaves a child that holds its output, until the time of the verifier is up.',
    fix: 'Give each program of the agent its own time limit (`judged timeout 10 …`), well below the time of the evaluation.',
    plays: (target) =>
      programPlays(
        target,
        { python: 'import time\ntime.sleep(100000)', shell: 'sleep 100000', c: '#include <unistd.h>\nint main() { for (;;) pause(); }' },
        { python: 'while True: pass', shell: 'while :; do :; done', c: 'int main() { for (volatile int i = 0;; i++) ; }' },
        {
          python: 'import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(100000)\nos._exit(0)',
          shell: '(setsid sleep 100000 &) ; exit 0',
        },
      ),
  },
];
