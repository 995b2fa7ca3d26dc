// The sandbox suite: memory that an agent holds in ways that the limit of a single process does not count.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type SuiteContext, timeoutMs } from './context.ts';

const limits = { memoryMiB: 384, diskMiB: 16, processes: 64 };
/** With a control group, a disk in memory counts too. */
const mostMiB = limits.memoryMiB + limits.diskMiB;

/** Each adds 32 MiB until it is refused or killed, or has 1.5 GiB, and prints how much it has after each step. */
const hoards: Readonly<Record<string, string>> = {
  'files without a name (memfd)': `fd = os.memfd_create('x')
def add(): os.write(fd, bytes(2**25))`,
  'System V shared memory': `def add():
  part = libc.shmget(0, 2**25, 0o1600)
  if part < 0: raise OSError
  ctypes.memset(ctypes.c_void_p(libc.shmat(part, None, 0)), 1, 2**25)`,
  'System V message queues': `message = ctypes.c_char_p((1).to_bytes(8, 'little') + bytes(8184))
def add():
  for _ in range(2048):
    queue = libc.msgget(0, 0o1600)
    if queue < 0: raise OSError
    for _ in range(2): libc.msgsnd(queue, message, ctypes.c_size_t(8184), 0o4000)`,
  'private memory of one process': `parts = []
def add(): parts.append(bytearray(2**25))`,
};

const prelude = `import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_long; libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
`;
const hoard = `
try:
  for step in range(48):
    add()
    print((step + 1) * 32, flush=True)
except (OSError, MemoryError): pass`;

export function defineMemory({ driver, isRootWritable }: SuiteContext): void {
  for (const [what, program] of Object.entries(hoards))
    test(`bounded: ${what}`, async () => {
      await using sandbox = await driver().open({ limits });
      const { stdout } = await sandbox.exec(['python3', '-c', prelude + program + hoard], { timeoutMs });
      assert.ok(Number(stdout.toString().trim().split('\n').at(-1)) <= mostMiB, stdout.toString());
    });

  test('bounded: memory of many processes together, also if they share it', async () => {
    await using sandbox = await driver().open({ limits });
    const child = `import mmap, os, time
m = mmap.mmap(-1, 2**27)
for i in range(0, 2**27, 4096): m[i] = 1
while not os.path.exists("/tmp/enough"): time.sleep(0.05)`;
    // Those that fit wait until eight have ended, which only the limit can do.
    const start = `for i in {1..12}; do (python3 -c '${child}'; echo "code $?") & done`;
    const { output } = await sandbox.runShell(`${start}; for i in {1..8}; do wait -n; done; touch /tmp/enough; wait`, {
      timeoutMs: 60_000,
    });
    const killed = output.match(/code 137/g)?.length ?? 0;
    assert.ok(killed >= 8, output);
    assert.match((await sandbox.runShell('echo alive', { timeoutMs })).output, /alive\n$/);
  });

  if (isRootWritable)
    test('an agent that replaces bash does not get rid of the limits', async () => {
      await using sandbox = await driver().open({ limits });
      const fake = '#!/bin/real-bash\\nwhile [ $# -gt 0 ] && [ "$1" != bash ]; do shift; done; shift; exec "$@"\\n';
      const replace = `cp /bin/bash /bin/real-bash; printf '${fake}' > /bin/fake; chmod 755 /bin/fake; mv /bin/fake /bin/bash`;
      assert.equal((await sandbox.runShell(replace, { timeoutMs })).output, '');
      const { stdout } = await sandbox.exec(['/usr/bin/python3', '-c', prelude + (hoards['private memory of one process'] ?? '') + hoard], {
        timeoutMs,
      });
      assert.ok(Number(stdout.toString().trim().split('\n').at(-1)) <= mostMiB, stdout.toString());
    });
}
