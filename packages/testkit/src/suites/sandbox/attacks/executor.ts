// Attacks on the executor, which runs next to the agent as the same user. It cannot be killed, starved or confused by what it runs.

import assert from 'node:assert/strict';
import type { Sandbox } from '@millrace/sandbox';
import { type Attack, nothingAchieved, prelude, timeoutMs } from './attack.ts';

/** The parent of Python's processes, and a copy of a file descriptor of it. */
const parent = `${prelude}
pid = os.getppid()
def copy(number): return libc.syscall(438, os.pidfd_open(pid), number, 0)
`;

export const executorAttacks: readonly Attack[] = [
  ...['nofile=3:3', 'cpu=1:1', 'as=1:1', 'fsize=0:0', 'nproc=1:1', 'stack=1:1'].map(
    (limit): Attack => ({
      name: `limits its executor with ${limit}`,
      family: 'executor',
      agent: { shell: `prlimit --pid 1 --${limit}; for i in {1..20}; do echo $i > file; done` },
      alone: {},
      holds: { output: /Operation not permitted/, and: (sandbox) => assertFiles(sandbox) },
    }),
  ),
  {
    name: 'sends its executor every signal, again and again',
    family: 'executor',
    agent: {
      python: `${prelude}
for round in range(300):
    for number in range(1, 65):
        for send in [lambda: os.kill(1, number), lambda: libc.syscall(ctypes.c_long(200), 1 + round % 12, number), lambda: signal.pidfd_send_signal(os.pidfd_open(1), number)]:
            try: send()
            except OSError: pass
            if round % 12: break`,
    },
    alone: {},
    holds: { and: (sandbox) => assertFiles(sandbox) },
  },
  {
    name: 'sends its executor real-time signals while it starts programs',
    family: 'executor',
    agent: { shell: 'for i in 1 2 3; do (for j in {1..1500}; do for signal in {34..64}; do kill -$signal 1; done; done) & done; true' },
    alone: {},
    holds: {
      and: async (sandbox) => {
        for (let count = 0; count < 100; count += 1) await sandbox.exec(['true'], { timeoutMs });
      },
    },
  },
  {
    name: 'gives its executor the lowest priority and one processor',
    family: 'executor',
    agent: {
      python: `${prelude}
arm = os.uname().machine == 'aarch64'
def call(x64, arm64, *args): return libc.syscall(ctypes.c_long(arm64 if arm else x64), *[arg if isinstance(arg, bytes) else ctypes.c_long(arg) for arg in args])
threads = [int(name) for name in os.listdir('/proc/1/task')]
print(len(threads), 'threads')
idle = b'\\x30\\0\\0\\0\\5' + bytes(43)
for tid in threads + [1 << 32 | thread for thread in threads]:
    attempt('priority of %d' % tid, lambda: call(141, 140, 0, tid, 19))
    attempt('processors of %d' % tid, lambda: call(203, 122, tid, 8, b'\\1' + bytes(7)))
    attempt('policy of %d' % tid, lambda: call(144, 119, tid, 5, bytes(4)))
    attempt('attributes of %d' % tid, lambda: call(314, 274, tid, idle, 0))
    attempt('parameters of %d' % tid, lambda: call(142, 118, tid, bytes(4)))
    attempt('disk priority of %d' % tid, lambda: call(251, 30, 1, tid, 3 << 13))
    attempt('limits of %d' % tid, lambda: call(302, 261, tid, 7, bytes(16), 0))
    attempt('memory of %d' % tid, lambda: call(256, 238, tid, 64, b'\\1' + bytes(7), b'\\1' + bytes(7)))
    attempt('pages of %d' % tid, lambda: call(279, 239, tid, 0, 0, 0, 0, 0))
    attempt('comparison with %d' % tid, lambda: call(312, 272, tid, os.getpid(), 1, 0, 0))
for which, who in [(1, 1), (2, 0), (2, os.getuid())]: attempt('priority %d' % which, lambda: call(141, 140, which, who, 19))
for which, who in [(2, 1), (3, 0), (3, os.getuid())]: attempt('disk priority %d' % which, lambda: call(251, 30, which, who, 3 << 13))
attempt('descriptor', lambda: call(438, 438, os.pidfd_open(1), 0, 0))
# An agent that is the root user of the machine owns these files.
for thread in threads if os.stat('/proc/1/oom_score_adj').st_uid != os.getuid() else []:
    for name, value in [('oom_score_adj', '1000'), ('oom_adj', '15'), ('timerslack_ns', '4000000000'), ('comm', 'x'), ('autogroup', '19'), ('sched', '0'),
        ('coredump_filter', '0'), ('clear_refs', '5'), ('attr/current', 'x'), ('make-it-fail', '1'), ('fail-nth', '1'), ('uid_map', '0 0 1'), ('mem', 'x'), ('loginuid', '0')]:
        for path in ['/proc/1/' + name, '/proc/1/task/%d/%s' % (thread, name)]:
            try: attempt('write to ' + path, lambda: os.write(os.open(path, os.O_WRONLY), value.encode()))
            except OSError: pass`,
    },
    alone: {},
    holds: { output: /^1 threads/, notOutput: nothingAchieved, and: (sandbox) => assertFiles(sandbox) },
  },
  {
    name: 'leaves a thousand zombies',
    family: 'executor',
    agent: { shell: 'for i in {1..1000}; do (true &); done 2>/dev/null; sleep 0.2; (true &) && echo started' },
    alone: {},
    timeoutMs: 30_000,
    holds: {
      output: /started/,
      notOutput: /Resource temporarily unavailable/,
      and: async (sandbox) => {
        const zombies = 'sleep 0.3; grep -l "^State:.Z" /proc/[0-9]*/status 2>/dev/null | wc -l';
        const { stdout } = await sandbox.exec(['bash', '-c', zombies], { timeoutMs });
        assert.ok(Number(stdout) < 5, `${stdout} zombies`);
      },
    },
  },
  {
    name: 'leaves zombies of programs that it forks twice',
    family: 'executor',
    agent: {
      python: `${prelude}\nfor i in range(200):\n    pid = os.fork()\n    if pid == 0:\n        os.fork()\n        os._exit(0)\n    os.waitpid(pid, 0); time.sleep(0.003)`,
    },
    alone: {},
    holds: { notOutput: /Error/ },
  },
  ...Object.entries({
    'a line that is not JSON': "b'not JSON\\n'",
    'messages of its parent':
      'b\'{"event": "exit"}\\n{"event": "ready", "requests": 0, "replies": 1, "output": 2}\\n{"event": "host", "pid": 1}\\n\'',
    'files that are no pipes': 'b\'{"event": "exit"}\\n{"event": "ready", "requests": "../../1/mem", "replies": -1, "output": 1e9}\\n\'',
    'a line without an end': "b'x' * (64 << 20)",
  }).map(
    ([what, bytes]): Attack => ({
      name: `writes ${what} into the channel of its Python parent`,
      family: 'executor',
      agent: { cell: `${parent}\ntry: socket.socket(fileno=copy(3)).sendall(${bytes})\nexcept OSError as error: print(error)` },
      holds: { and: (sandbox) => assertPython(sandbox) },
    }),
  ),
  {
    name: 'floods the reply pipe of its Python process from a process that survives it',
    family: 'executor',
    agent: {
      cell: `${prelude}
pipes = [n for n in range(3, 64) if os.path.exists('/proc/self/fd/%d' % n) and os.readlink('/proc/self/fd/%d' % n).startswith('pipe:')]
for n in pipes:
    if os.fork() == 0:
        os.setsid()
        try:
            for i in range(300): os.write(n, b'\\xff' * (1 << 16))
        except OSError: pass
        os._exit(0)`,
    },
    holds: { and: (sandbox) => assertPython(sandbox) },
  },
  {
    name: 'holds the files of its Python parent open, and kills it',
    family: 'executor',
    agent: {
      cell: `${parent}
if os.fork() == 0:
    os.setsid(); files = [copy(n) for n in range(12)]
    os.kill(pid, signal.SIGKILL); time.sleep(30)
time.sleep(20)`,
    },
    timeoutMs: 3000,
    holds: { and: (sandbox) => assertPython(sandbox) },
  },
  {
    name: 'stops its Python parent',
    family: 'executor',
    agent: { cell: `${parent}\nos.kill(pid, signal.SIGSTOP); os._exit(1)` },
    timeoutMs: 2000,
    holds: { and: (sandbox) => assertPython(sandbox) },
  },
  {
    name: 'replaces its bash by a program that says nothing',
    family: 'executor',
    agent: {
      shell:
        'sleep=$(command -v sleep); rm -f /bin/bash 2>/dev/null && printf "#!$sleep 1000\\n" > /bin/bash && chmod +x /bin/bash; kill -9 $$',
    },
    alone: {},
    timeoutMs: 30_000,
    holds: { mayDie: true, isSelfHarm: true },
  },
  {
    name: 'replaces the program of every tool that it can write',
    family: 'executor',
    agent: {
      shell:
        'for tool in tar cat sh stat mkdir python3 env stty; do path=$(command -v $tool) && rm -f $path 2>/dev/null && ln -s /bin/false $path; done; true',
    },
    alone: {},
    holds: { mayDie: true },
  },
];

/** Files can be written and read. */
async function assertFiles(sandbox: Sandbox): Promise<void> {
  await sandbox.writeFile('/workspace/small', 'x');
  assert.equal((await sandbox.readFile('/workspace/small', { maxBytes: 10 })).toString(), 'x');
}

/** Of three cells, the last one runs: the ones before may only report that the process was lost. */
async function assertPython(sandbox: Sandbox): Promise<void> {
  const seen: string[] = [];
  for (let count = 0; count < 3; count += 1) {
    const { output, end } = await sandbox.runPython('print(6 * 7)', { timeoutMs });
    seen.push(`${end}: ${output}`);
    if (end === 'ok' && output.endsWith('42\n')) return;
  }
  assert.fail(`Python does not work: ${seen.join('; ')}`);
}
