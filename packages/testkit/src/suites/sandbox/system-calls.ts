// The sandbox suite: system calls that no agent needs are refused, family by family, and keys stay inside the sandbox that made them.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import type { Sandbox } from '@millrace/sandbox';
import { type SuiteContext, timeoutMs } from './context.ts';

/** The arguments change nothing where the call is not refused; most are invalid. A second number is for arm64, if it differs. */
const families: Readonly<Record<string, string>> = {
  mounts: `call(165, 40); call(166, 39); call(155, 41); call(430, args=(b'tmpfs', 0)); call(431); call(432); call(433); call(429); call(428); call(442)`,
  'other namespaces': 'call(308, 268, args=(-1, 0)); call(272, 97, args=(0x10000000,)); call(56, 220, args=(0x10000000 | 17, 0, 0, 0, 0))',
  io_uring: 'call(425, args=(0, 0)); call(426, args=(-1,)); call(427, args=(-1,))',
  keys: 'call(248, 217); call(249, 218); call(250, 219, args=(99999,))',
  'code in the kernel':
    'call(321, 280, args=(99999, 0, 0)); call(175, 105); call(313, 273); call(176, 106); call(246, 104); call(320, 294)',
  'observation of the kernel': 'call(298, 241); call(103, 116, args=(99,)); call(300, 262, args=(0x200, 0))',
  'files by handle': 'call(304, 265, args=(-1, 0, 0))',
  'tools of kernel exploits':
    'call(323, 282, args=(0x7fff,)); call(447, args=(0x7fff,)); call(154, None); call(172, None); call(173, None, args=(0, 1, 0))',
  'settings of the machine':
    'call(169, 142); call(167, 224); call(168, 225); call(163, 89, args=(b"/no/such",)); call(179, 60); call(443); call(164, 170); call(227, 112); call(170, 161, args=(b"x", 1)); call(171, 162, args=(b"x", 1)); call(153, 58)',
  'sockets of rare families':
    '[call(41, 198, args=(family, kind, 0)) for family in [3, 9, 15, 17, 21, 29, 30, 38, 40, 44] for kind in [1, 2, 3, 5]]; call(53, 199, args=(30, 1, 0, 0))',
  'typing into a terminal':
    'call(16, 29, args=(0, 0x5412, b"x")); call(16, 29, args=(0, 0x541c, b"x")); call(16, 29, args=(0, 1 << 32 | 0x5412, b"x"))',
  'limits of other processes': 'call(302, 261, args=(1, 7, bytes(16), 0)); call(302, 261, args=(os.getpid(), 7, bytes(16), 0))',
};

const prelude = `import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
is_arm = os.uname().machine == 'aarch64'
seen = set()
def call(x64, arm64=0, args=()):
    number = x64 if not is_arm or arm64 == 0 else arm64
    if number is None: return
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[arg if isinstance(arg, bytes) else ctypes.c_long(arg) for arg in args] or [ctypes.c_long(0)] * 6)
    if result == 0 and number in (56, 220): os._exit(0)
    seen.add('refused' if (result, ctypes.get_errno()) == (-1, 1) else 'call %d: %d, error %d' % (number, result, ctypes.get_errno()))
`;

export function defineSystemCalls({ driver, sandbox }: SuiteContext): void {
  for (const [family, calls] of Object.entries(families))
    test(`refused: ${family}`, async () => {
      assert.equal(await runPython(sandbox(), `${prelude}${calls}\nprint(*sorted(seen), sep='\\n')`), 'refused\n');
    });

  test('clone3 does not exist, also not for an agent that traces the program that calls it, and threads and processes start without it', async () => {
    const traced = `${prelude}
import signal, threading, time, subprocess
libc.syscall(ctypes.c_long(435), 0, 0)
print('clone3', ctypes.get_errno())
child = os.fork()
if child == 0:
    libc.ptrace(0, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(100)
os.waitpid(child, 0)
print('trace', libc.ptrace(0x4200, child, 0, 0x80), 'seize', libc.ptrace(0x4206, os.getpid(), 0, 0x80))
os.kill(child, signal.SIGKILL)
thread = threading.Thread(target=print, args=('thread',)); thread.start(); thread.join()
print(subprocess.run(['echo', 'process'], capture_output=True, text=True).stdout, end='')`;
    assert.match(await runPython(sandbox(), traced), /^clone3 38\ntrace (0|-1) seize -1\nthread\nprocess\n$/);
  });

  test('ordinary sockets, pipes, shared memory and limits of its own can be used', async () => {
    const program = `import socket, resource, mmap, multiprocessing.shared_memory as shm, os
for family in [socket.AF_UNIX, socket.AF_INET, socket.AF_INET6]: socket.socket(family).close()
socket.socketpair(); socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close(); os.pipe(); os.eventfd(0)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); mmap.mmap(-1, 4096)
block = shm.SharedMemory(create=True, size=4096); block.close(); block.unlink()
print('fine')`;
    assert.equal(await runPython(sandbox(), program), 'fine\n');
  });

  test('priority, policy and processors of its own processes and threads can be changed', async () => {
    const program = `import os, resource, subprocess, threading
def change(tid):
    os.sched_setaffinity(tid, os.sched_getaffinity(tid)); os.sched_setscheduler(tid, os.SCHED_BATCH, os.sched_param(0)); os.setpriority(os.PRIO_PROCESS, tid, 15)
thread = threading.Thread(target=lambda: change(threading.get_native_id())); thread.start(); thread.join()
child = subprocess.Popen(['sleep', '10']); change(child.pid); change(0); change(os.getpid())
for command in ['nice -n 16 true', 'taskset 0xffffffff true', 'chrt --batch 0 true', 'ionice -c 3 true', 'renice -n 17 -p %d' % child.pid,
    'taskset -p 0xffffffff %d' % child.pid, 'chrt --idle -p 0 %d' % child.pid, 'ionice -c 3 -p %d' % child.pid, 'make -v']:
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    if done.returncode not in (0, 127): print(command, done)
child.kill()
print('fine')`;
    assert.equal(await runPython(sandbox(), program), 'fine\n');
  });

  test('a program of another architecture is killed', { skip: process.arch !== 'x64' && 'x86 only' }, async () => {
    const program = `import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=7)
code.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3]))
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))())`;
    const { signal } = await sandbox().exec(['python3', '-c', program], { timeoutMs });
    assert.equal(signal, 'SIGSYS');
  });

  test('a key that an agent plants is not seen by the next sandbox, nor on the machine', async () => {
    const plant = `${prelude}
for ring in [-1, -2, -3, -4, -5]: libc.syscall(ctypes.c_long(217 if is_arm else 248), b'user', b'millrace-planted', b'x', ctypes.c_size_t(1), ctypes.c_long(ring))`;
    const search = `${prelude}
found = [libc.syscall(ctypes.c_long(219 if is_arm else 250), ctypes.c_long(10), ctypes.c_long(ring), b'user', b'millrace-planted', ctypes.c_long(0)) for ring in [-3, -4, -5]]
print({key > 0 for key in found})
for path in ['/proc/keys', '/proc/key-users']:
    try: print(open(path).read(), end='')
    except OSError: pass`;
    {
      await using first = await driver().open({});
      await runPython(first, plant);
    }
    await using second = await driver().open({});
    assert.equal(await runPython(second, search), '{False}\n');
    assert.doesNotMatch(await readFile('/proc/keys', 'utf8'), /millrace-planted/);
  });

  test('user namespaces are refused unless the configuration allows them', async () => {
    await assert.rejects(driver().open({ namespaces: 'user' }), { code: 'sandbox-refused', message: /sandbox\.allowUserNamespaces/ });
  });
}

async function runPython(sandbox: Sandbox, program: string): Promise<string> {
  const { stdout, stderr } = await sandbox.exec(['python3', '-c', program], { timeoutMs });
  return stdout.toString() + stderr.toString();
}
