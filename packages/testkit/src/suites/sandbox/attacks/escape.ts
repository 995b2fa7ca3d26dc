// Attacks on the walls of a sandbox: ways to the machine, its kernel, its users and its neighbours. Each attempt is refused.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { type Attack, nothingAchieved, prelude } from './attack.ts';

const marker = 'millrace-attack';

export const escapeAttacks: readonly Attack[] = [
  escapes(
    'opens the root, the folder and the files of the executor',
    `
for path in ['root/etc', 'cwd', 'root/proc/1/root/etc']: attempt(path, lambda: os.listdir('/proc/1/' + path))
for n in range(64): attempt('fd %d' % n, lambda: os.open('/proc/1/fd/%d' % n, os.O_RDWR))
for name in ['mem', 'environ', 'maps', 'auxv', 'stack', 'syscall', 'pagemap']: attempt(name, lambda: open('/proc/1/' + name, 'rb').read(1) or None)`,
  ),
  escapes(
    'enters the namespaces of the executor and of the machine',
    `
for name in os.listdir('/proc/self/ns'):
    attempt(name, lambda: libc.setns(os.open('/proc/1/ns/' + name, os.O_RDONLY), 0))
attempt('setns by pidfd', lambda: libc.setns(os.pidfd_open(1), 0x20000000 | 0x00020000))`,
  ),
  escapes(
    'creates device files',
    `
for number, name in [(os.makedev(254, 0), 'disk'), (os.makedev(8, 0), 'disk'), (os.makedev(1, 1), 'memory'), (os.makedev(1, 2), 'kernel memory')]:
    for kind in [0o60660, 0o20660]:
        path = '/tmp/device-%d-%d' % (number, kind)
        try: os.mknod(path, kind, number)
        except OSError as error: print('refused', error); continue
        attempt(name, lambda: os.open(path, os.O_RDONLY))`,
  ),
  escapes(
    'opens the disks and the memory of the machine',
    `
for name in os.listdir('/dev'):
    if name.startswith(('sd', 'vd', 'nvme', 'loop', 'mem', 'kmem', 'kmsg', 'port', 'kvm', 'fuse', 'vhost', 'vsock', 'mapper', 'dm-', 'net')):
        attempt(name, lambda: os.open('/dev/' + name, os.O_RDONLY) if not os.path.isdir('/dev/' + name) else None)
attempt('core', lambda: os.open('/proc/kcore', os.O_RDONLY))`,
  ),
  escapes(
    'changes its root',
    `
attempt('chroot', lambda: os.chroot('/tmp'))
attempt('pivot_root', lambda: True if libc.syscall(ctypes.c_long(155), b'/tmp', b'/tmp') == 0 else None)`,
  ),
  escapes(
    'takes capabilities and other users',
    `
attempt('setuid', lambda: os.setuid(0) or (True if os.getuid() == 0 and open('/proc/self/status').read().count('CapEff:\\t0000000000000000') == 0 else None))
attempt('setgroups', lambda: os.setgroups([0, 4, 6, 27]) or True)
attempt('capset', lambda: libc.syscall(ctypes.c_long(126), struct.pack('Ii', 0x20080522, 0), struct.pack('6I', *[0xffffffff] * 6)) + 1 or None)
attempt('keepcaps', lambda: None if libc.prctl(39, 0, 0, 0, 0) == 1 else True)`,
  ),
  escapes(
    'opens raw sockets and sockets of rare families',
    `
for family, kind in [(2, 3), (10, 3), (17, 3), (40, 1), (38, 5), (44, 3), (16, 3)]:
    def open_socket():
        s = socket.socket(family, kind)
        if family == 40: s.settimeout(1); s.connect((2, 22)); return 'reached the hypervisor'
        if family == 16: return None
        if family == 38: s.bind(('hash', 'sha256')); return 'the kernel computes'
        return 'open'
    attempt('family %d' % family, open_socket)`,
  ),
  escapes(
    'reaches the network of the machine',
    `
for address in ['127.0.0.1', '169.254.169.254', '1.1.1.1', '10.0.0.1', '192.168.0.1']:
    for port in [22, 53, 80, 8400]:
        s = socket.socket(); s.settimeout(0.2)
        attempt(address, lambda: True if s.connect_ex((address, port)) == 0 else None)`,
  ),
  escapes(
    'loads code into the kernel',
    `
arm = os.uname().machine == 'aarch64'
for name, x64, arm64 in [('bpf', 321, 280), ('init_module', 175, 105), ('finit_module', 313, 273), ('kexec_load', 246, 104), ('perf_event_open', 298, 241)]:
    attempt(name, lambda: libc.syscall(ctypes.c_long(arm64 if arm else x64), 5, ctypes.create_string_buffer(128), 128, -1, 0))`,
  ),
  escapes(
    'changes the clock, the name and the swap of the machine',
    `
attempt('clock', lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()) or True)
attempt('name', lambda: socket.sethostname('mine') or True)
attempt('swap', lambda: libc.swapoff(b'/swapfile'))
attempt('reboot', lambda: libc.reboot(0x89abcdef))`,
  ),
  escapes(
    'signals processes that it does not see',
    `
visible = {int(name) for name in os.listdir('/proc') if name.isdigit()}
threads = {int(task) for pid in visible if os.path.isdir('/proc/%d/task' % pid) for task in os.listdir('/proc/%d/task' % pid)}
for pid in range(2, 3000):
    if pid not in visible | threads: attempt('pid %d' % pid, lambda: os.kill(pid, 0) or True) if pid % 50 == 0 else None`,
  ),
  escapes(
    'writes to control groups and kernel settings',
    `
import glob
for pattern in ['/sys/fs/cgroup/**/tasks', '/sys/fs/cgroup/**/cgroup.procs', '/sys/fs/cgroup/**/*limit*', '/sys/kernel/**/*', '/proc/sys/kernel/*', '/proc/sys/vm/*', '/proc/sysrq-trigger', '/proc/irq/*/smp_affinity']:
    for path in glob.glob(pattern)[:200]:
        # ns_last_pid is a setting of the sandbox's own process namespace, and writing to it needs a capability.
        if not path.endswith('ns_last_pid') and os.path.isfile(path) and os.access(path, os.W_OK): attempt(path, lambda: os.open(path, os.O_WRONLY))`,
  ),
  escapes(
    "changes the executor's program, library and settings",
    `
for path in ['/opt/millrace/bin/executor', '/opt/millrace/lib/ipython_host.py', '/run/millrace/link/env.json', '/run/millrace/link/limits.json']:
    attempt('open ' + path, lambda: os.open(path, os.O_WRONLY))
    attempt('remove ' + path, lambda: os.remove(path) or True)
    attempt('move ' + path, lambda: os.rename(path, path + 'x') or True)
    attempt('mode ' + path, lambda: os.chmod(path, 0o777) or True)`,
  ),
  {
    name: 'leaves files in shared folders and shared memory of the machine',
    family: 'escape',
    agent: {
      python: `${prelude}
for folder in ['/tmp', '/dev/shm', '/var/tmp', '/run', '/dev/mqueue', '/']:
    try: open(folder + '/${marker}', 'w').close()
    except OSError: pass
libc.shmget(0x4d524154, 4096, 0o1600)
libc.semget(0x4d524154, 1, 0o1600)
libc.mq_open(b'/${marker}', 0o102, 0o600, None)
s = socket.socket(socket.AF_UNIX); s.bind(b'\\0${marker}'); s.listen()
os.spawnlp(os.P_NOWAIT, 'sleep', 'sleep', '5')`,
    },
    holds: {
      and: async () => {
        for (const folder of ['/tmp', '/dev/shm', '/var/tmp', '/run', '/dev/mqueue', '/'])
          assert.ok(!existsSync(`${folder}/${marker}`), `${folder} of the machine`);
        for (const kind of ['shm', 'sem'])
          assert.ok(!readFileSync(`/proc/sysvipc/${kind}`, 'utf8').includes(String(0x4d524154)), `${kind} of the machine`);
        assert.ok(!readFileSync('/proc/net/unix', 'utf8').includes(`@${marker}`), 'a socket of the machine');
      },
    },
  },
];

function escapes(name: string, python: string): Attack {
  return { name, family: 'escape', agent: { python: prelude + python }, holds: { notOutput: nothingAchieved } };
}
