// The sandbox suite: agents that create namespaces to get rights. None of them can mount a file system, so none reaches the control groups
// that limit its own sandbox.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type SuiteContext, timeoutMs } from './context.ts';

/** Creates namespaces of users, mounts and control groups through the given system call, and mounts every kind of file system there. */
const mountAll = `import ctypes, os, struct
libc = ctypes.CDLL(None)
flags = 0x10000000 | 0x00020000 | 0x02000000
def start(call):
    if call == 'clone3': return libc.syscall(435, ctypes.create_string_buffer(struct.pack('8Q', flags, 0, 0, 0, 17, 0, 0, 0)), 64)
    if call == 'clone': return libc.syscall(56 if os.uname().machine == 'x86_64' else 220, flags | 17, 0, 0, 0, 0)
    pid = os.fork()
    if pid == 0 and libc.unshare(flags) != 0: os._exit(0)
    return pid
for call in ['unshare', 'clone', 'clone3']:
    pid = start(call)
    if pid == 0:
        for kind, options in [(b'cgroup', b'memory'), (b'cgroup', b'pids'), (b'cgroup', b'freezer'), (b'cgroup2', None), (b'tmpfs', None)]:
            if libc.mount(b'x', b'/tmp', kind, 0, options) == 0: print(call, 'mounted', kind, options, flush=True)
        new = libc.syscall(430, b'cgroup2', 0)
        if new >= 0: print(call, 'opened a file system', flush=True)
        os._exit(0)
    if pid > 0: os.waitpid(pid, 0)
print('done')`;

export function defineNamespaces({ driver }: SuiteContext): void {
  test('an agent cannot mount control groups, or anything else, in namespaces of its own', async () => {
    await using sandbox = await driver().open({});
    const result = await sandbox.exec(['python3', '-c', mountAll], { timeoutMs });
    assert.equal(result.stdout.toString(), 'done\n', result.stderr.toString());
  });
}
