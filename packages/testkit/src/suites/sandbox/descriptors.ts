// The sandbox suite: file descriptors that a worker inherits from the process that started it never reach an agent.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import type { SandboxSpec } from '@millrace/sandbox';
import { timeoutMs } from './context.ts';

/** How another process opens the driver under test. */
export interface DriverCall {
  readonly name: 'openBubblewrapDriver' | 'openApptainerDriver';
  readonly options: { readonly runDir: string };
  readonly spec: SandboxSpec;
}

export function defineDescriptors(call: () => DriverCall): void {
  // Node closes the low ones itself, up to the first gap above 15.
  test('a worker that inherited descriptors of the root folder, at any number, passes none of them to its agents', async () => {
    const seen = await runOwner(call(), [3, 4, 9, 10, 15, 16, 30, 100, 200]);
    assert.deepEqual(seen, { shell: 'none\n', program: 'none\n', cell: 'none\n' });
  });

  test('a worker that inherited more descriptors than an agent may open passes none of them on', async () => {
    const { spec, ...other } = call();
    const many = Array.from({ length: 150 }, (_, index) => 20 + index);
    const seen = await runOwner({ ...other, spec: { ...spec, limits: { openFiles: 128 } } }, many);
    assert.deepEqual(seen, { shell: 'none\n', program: 'none\n', cell: 'none\n' });
  });
}

/** Every folder that a process of the sandbox holds open, found through /proc; the executor's own cannot be seen from inside. */
const find = 'ls -d /proc/[0-9]*/fd/*/etc 2>/dev/null || echo none';

/** Starts a process with these descriptors, all of the root folder, which opens a sandbox and returns what its agent finds. */
async function runOwner({ name, options, spec }: DriverCall, inherited: readonly number[]): Promise<unknown> {
  const program = `
    import { silentLog } from '@millrace/base/log';
    import { ${name} as open } from '@millrace/sandbox';
    const driver = await open({ ...${JSON.stringify(options)}, log: silentLog });
    await using sandbox = await driver.open(${JSON.stringify(spec)});
    const limits = { timeoutMs: ${timeoutMs} };
    const find = ${JSON.stringify(find)};
    const shell = (await sandbox.runShell(find, limits)).output;
    const cell = (await sandbox.runPython('import subprocess; print(subprocess.getoutput(' + JSON.stringify(find) + '))', limits)).output;
    const program = (await sandbox.exec(['bash', '-c', find], limits)).stdout.toString();
    console.log(JSON.stringify({ shell, program, cell }));`;
  const root = openSync('/', 'r');
  try {
    const extra = Array.from({ length: Math.max(...inherited) - 2 }, (_, index) => (inherited.includes(index + 3) ? root : 'ignore'));
    const stdio = ['ignore', 'pipe', 'inherit', ...extra] as const;
    const owner = spawn(process.execPath, ['--input-type=module', '-e', program], { cwd: import.meta.dirname, stdio: [...stdio] });
    const [output] = await Promise.all([owner.stdout ? text(owner.stdout) : '', once(owner, 'exit')]);
    return JSON.parse(output);
  } finally {
    closeSync(root);
  }
}
