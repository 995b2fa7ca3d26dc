// The sandbox suite: the folder of a harness is the same in every sandbox that mounts it, and no agent can change it.

import assert from 'node:assert/strict';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { SandboxDriver, SandboxSpec } from '@millrace/sandbox';

const timeoutMs = 10_000;

interface MountBed {
  driver(): SandboxDriver;
}

/** How the driver was opened, and a spec that it opens. */
interface OpenedDriver {
  readonly options: { readonly runDir: string };
  readonly spec: SandboxSpec;
}

export function defineHarnessMount({ driver }: MountBed, call: () => OpenedDriver): void {
  test('a harness is mounted read-only, and a sandbox without one has none', async () => {
    const folder = join(call().options.runDir, 'harness-of-a-test');
    await mkdir(folder);
    await chmod(folder, 0o755);
    await writeFile(join(folder, 'start'), '#!/bin/sh\necho "started $1"\n', { mode: 0o755 });
    await chmod(join(folder, 'start'), 0o755);
    await using sandbox = await driver().open({ ...call().spec, harness: folder });
    const { stdout } = await sandbox.exec(['/opt/millrace/harness/start', 'well'], { timeoutMs });
    assert.equal(stdout.toString(), 'started well\n');
    const attack = 'cd /opt/millrace/harness; echo x > new; echo x >> start; rm -f start; chmod 777 start; mv start other; ls';
    const { output } = await sandbox.runShell(attack, { timeoutMs });
    assert.match(output, /Read-only file system[\s\S]*\nstart\n$/);
    await using plain = await driver().open(call().spec);
    assert.match((await plain.runShell('ls -A /opt/millrace/harness', { timeoutMs })).output, /^(ls: .*No such file.*\n)?$/);
  });
}
