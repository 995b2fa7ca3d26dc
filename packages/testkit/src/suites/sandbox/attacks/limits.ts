// Attacks on limits, and attacks that starve the machine: what an agent holds stays within its limits, and its neighbours keep working.

import assert from 'node:assert/strict';
import { type Attack, nothingAchieved, prelude } from './attack.ts';

/** The limit of memory, and what the disks of a small sandbox may hold in addition. */
const mostMiB = 384 + 200;

export const limitAttacks: readonly Attack[] = [
  holdsMemory(
    'in files without a name',
    `
def grow():
    fd = os.memfd_create('x'); block = bytes(1 << 20)
    while held < 1500: os.write(fd, block); yield 1`,
  ),
  holdsMemory(
    'in shared memory of System V',
    `
def grow():
    libc.shmat.restype = ctypes.c_void_p
    while held < 1500:
        key = libc.shmget(0, 32 << 20, 0o1600)
        if key < 0: raise OSError('refused')
        at = libc.shmat(key, None, 0); ctypes.memset(at, 1, 32 << 20); libc.shmdt(ctypes.c_void_p(at)); yield 32`,
  ),
  holdsMemory(
    'in sockets',
    `
def grow():
    block = bytes(1 << 16)
    for _ in range(2000):
        a, b = socket.socketpair(); a.setblocking(False); a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 23); kept.append((a, b))
        try:
            while True: yield a.send(block) / (1 << 20)
        except BlockingIOError: pass`,
  ),
  holdsMemory(
    'in pipes',
    `
def grow():
    import fcntl
    for _ in range(2000):
        r, w = os.pipe(); kept.append((r, w)); os.set_blocking(w, False)
        try: fcntl.fcntl(w, 1031, 1 << 20)
        except OSError: pass
        try:
            while True: yield os.write(w, bytes(1 << 16)) / (1 << 20)
        except BlockingIOError: pass`,
  ),
  holdsMemory(
    'in anonymous memory of many processes',
    `
def grow():
    global held
    for _ in range(90):
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            block = bytearray(16 << 20); block[::4096] = b'x' * len(block[::4096]); os.write(w, b'x'); time.sleep(100)
        os.close(w); kept.append(pid)
        if os.read(r, 1) != b'x': break
        yield 0
    held = 16 * sum(os.waitpid(pid, os.WNOHANG) == (0, 0) for pid in kept)`,
  ),
  {
    name: 'raises its own limits',
    family: 'limits',
    agent: {
      python: `${prelude}
import resource
for kind in [resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_AS, resource.RLIMIT_CORE, resource.RLIMIT_RTPRIO, resource.RLIMIT_NICE, resource.RLIMIT_MEMLOCK]:
    soft, hard = resource.getrlimit(kind)
    if hard != -1: attempt('limit %d' % kind, lambda: resource.setrlimit(kind, (hard + 1, hard + 1)) or True)
attempt('oom', lambda: open('/proc/self/oom_score_adj', 'w').write('-1000') and None)
attempt('oom', lambda: True if int(open('/proc/self/oom_score_adj').read()) < 500 else None)`,
    },
    holds: { notOutput: nothingAchieved },
  },
  {
    name: 'starts more threads than its processes allow',
    family: 'limits',
    agent: {
      python: `${prelude}
import threading
count = 0
try:
    while count < 400: threading.Thread(target=time.sleep, args=(100,), daemon=True).start(); count += 1
except RuntimeError: pass
print('ACHIEVED' if count > 150 else 'held', count, flush=True); os._exit(0)`,
    },
    alone: {},
    holds: { notOutput: nothingAchieved },
  },
  {
    name: 'starts daemons in new sessions until none can start',
    family: 'limits',
    agent: { shell: 'for i in {1..80}; do setsid bash -c "sleep 1000 & disown" 2>/dev/null & done 2>/dev/null; wait; kill -9 -1' },
    alone: {},
    holds: { mayDie: true },
  },
  {
    name: 'fills its disk with small files',
    family: 'limits',
    agent: { python: `${prelude}\nfor i in range(5000): attempt('', lambda: open('/workspace/%d' % i, 'w').write('x' * 8000) and None)` },
    alone: {},
    holds: { output: /No space left on device|Disk quota exceeded|^$/ },
  },
];

export const starvationAttacks: readonly Attack[] = [
  {
    name: 'asks for real-time priority',
    family: 'starvation',
    agent: {
      python: `${prelude}
for policy in [os.SCHED_FIFO, os.SCHED_RR]: attempt('policy %d' % policy, lambda: os.sched_setscheduler(0, policy, os.sched_param(1)) or True)
attempt('nice', lambda: True if os.nice(-5) < 5 else None)`,
    },
    holds: { notOutput: nothingAchieved },
  },
  starves('spins in every process that it may start', 'for i in {1..40}; do (while :; do :; done) & done 2>/dev/null; sleep 0.5'),
  starves('starts short programs without end', 'for i in {1..8}; do (while :; do /bin/true; done) & done 2>/dev/null; sleep 0.5'),
  starves(
    'writes to its disk without end',
    'for i in 1 2 3 4; do (while :; do head -c 2M /dev/zero > file$i; sync file$i; done) 2>/dev/null & done; sleep 0.5',
  ),
  starves('prints without end', 'timeout 1 yes "$(head -c 4000 /dev/zero | tr "\\0" x)"'),
  starves('prints escape sequences without end', 'timeout 1 yes "$(printf \'\\e[K\\r\\b\\e]0;\')"'),
  starves(
    'switches between processes without end',
    'for i in {1..10}; do (while :; do echo x; done | cat >/dev/null) & done 2>/dev/null; sleep 0.5',
  ),
];

function holdsMemory(where: string, grow: string): Attack {
  const python = `${prelude}
held = 0
kept = []
${grow}
try:
    for piece in grow(): held += piece
except OSError as error: print('refused', error)
print('held', int(held), flush=True)
os.kill(0, signal.SIGKILL)`;
  return {
    name: `holds memory ${where}`,
    family: 'limits',
    agent: { shell: `python3 - <<'end'\n${python}\nend` },
    alone: {},
    holds: {
      output: /Killed|refused|held|MemoryError|^$/,
      mayDie: true,
      notOutput: new RegExp(`held (${toPattern(mostMiB)})`),
    },
  };
}

/** A pattern for whole numbers above this one of three digits. */
function toPattern(most: number): string {
  const [a = 0, b = 0] = [...String(most)].map(Number);
  assert.ok(most >= 100 && most < 1000);
  return `\\d{4,}|[${a + 1}-9]\\d\\d|${a}[${b + 1}-9]\\d`;
}

function starves(name: string, shell: string): Attack {
  return { name, family: 'starvation', agent: { shell }, alone: {}, holds: { mayDie: true } };
}
