// What counts as the time of a sandbox's programs: one that makes its parent wait in the kernel is asleep, not kept from running by the machine.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { makeTempFolder } from '@millrace/testkit/plain';
import { openBubblewrapDriver } from '../../src/bubblewrap/bubblewrap.ts';
import { probeBubblewrap } from '../../src/bubblewrap/probe.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;

const vfork = (hide: string) => `import ctypes, os, time
libc = ctypes.CDLL(None)
${hide}
open('/workspace/ready', 'w').close()
if libc.syscall({'x86_64': 56, 'aarch64': 220}[os.uname().machine], 0x4000 | 17, 0, 0, 0, 0) == 0:
    time.sleep(3000)
    os._exit(0)`;

for (const [who, hide] of [
  ['a program', ''],
  ['a program that cannot be traced', 'libc.prctl(4, 0, 0, 0, 0)'],
] as const)
  test(`${who} that waits for the child of its vfork does not keep its sandbox busy`, { skip, timeout: 120_000 }, async () => {
    await using folder = await makeTempFolder('use');
    const driver = await openBubblewrapDriver({ runDir: folder.path, log: silentLog });
    await using sandbox = await driver.open({});
    const stop = new AbortController();
    const ended = sandbox.exec(['python3', '-c', vfork(hide)], { timeoutMs: 100_000, signal: stop.signal }).catch(() => undefined);
    const pause = () => new Promise((resolve) => systemClock.after(50, () => resolve(undefined)));
    while (!(await sandbox.readFile('/workspace/ready', { maxBytes: 1 }).catch(() => undefined))) await pause();
    let calm = 0;
    for (let looks = 0; calm < 20 && looks < 600; looks += 1) {
      await pause();
      calm = sandbox.readUse().isBusy ? 0 : calm + 1;
    }
    stop.abort();
    await ended;
    assert.equal(calm, 20);
  });
