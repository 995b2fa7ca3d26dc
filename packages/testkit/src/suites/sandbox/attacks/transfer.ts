// Attacks on what the worker copies out of a sandbox: no file of the machine is read or written, and a tree that cannot be copied is the
// agent's own loss.

import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RolloutError } from '@millrace/protocol';
import type { Sandbox } from '@millrace/sandbox';
import { makeTempFolder } from '../../../temp-folder.ts';
import type { Attack } from './attack.ts';

export const transferAttacks: readonly Attack[] = [
  ...Object.entries({
    'links to files of the machine': 'mkdir work; ln -s /etc/passwd work/a; ln -s ../canary work/b; ln -s . work/c; ln -s ../../.. work/d',
    'a link in place of the folder': 'ln -s / work',
    'a link to the canary in place of the folder': 'ln -s ../canary work',
    'pipes, sockets and devices':
      'mkdir work; mkfifo work/pipe; mknod work/null c 1 3; python3 -c "import socket; socket.socket(1).bind(\'work/socket\')"',
    'names with newlines and controls': "mkdir work; touch work/$'new\\nline' work/$'\\e]0;x\\a' work/-rf work/' ' work/'\"'",
    'names that are not UTF-8': "mkdir work; touch work/$'\\xff\\xfe'",
    'a file that grows while it is read': 'mkdir work; (timeout 3 yes > work/log &) ; sleep 0.05',
    'a hole of four terabytes': 'mkdir work; truncate -s 4T work/hole',
    'ten thousand hard links':
      "mkdir work; echo x > work/f; python3 -c \"import os\nfor i in range(10000): os.link('work/f', 'work/%d' % i)\"",
  }).map(
    ([what, shell]): Attack => ({
      name: `leaves ${what}`,
      family: 'transfer',
      agent: { shell },
      alone: { diskMiB: 64 },
      holds: { mayDie: true, and: copyOut },
    }),
  ),
];

/** Copies the agent's folder into a folder next to a canary. */
async function copyOut(sandbox: Sandbox): Promise<void> {
  await using temp = await makeTempFolder('attack');
  const canary = join(temp.path, 'canary');
  await writeFile(canary, 'unharmed');
  const target = join(temp.path, 'work');
  const problem = await sandbox.download('work', target, { maxBytes: 8 << 20, maxEntries: 5000, timeoutMs: 5000 }).then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.equal(await readFile(canary, 'utf8'), 'unharmed');
  assert.deepEqual(
    (await readdir(temp.path)).filter((name) => !['canary', 'work'].includes(name)),
    [],
  );
  // With types, links are not followed.
  for (const entry of await readdir(target, { recursive: true, withFileTypes: true }).catch(() => [])) {
    assert.ok(entry.isFile() || entry.isDirectory() || entry.isSymbolicLink(), entry.name);
    if (entry.isFile()) assert.notEqual(await readFile(join(entry.parentPath, entry.name), 'latin1'), 'unharmed', entry.name);
  }
  // Which blame a failed copy gets is decided where the rollout is recorded; it must never be retried.
  if (problem && !(problem instanceof RolloutError && !problem.retryable)) throw problem;
}
