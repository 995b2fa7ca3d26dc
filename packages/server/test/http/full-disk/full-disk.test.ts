// The service on a disk that really is full: a small tmpfs, mounted for one process in its own mount namespace. As another user than
// root, it is mounted in a user namespace.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { makeTempFolder } from '@millrace/testkit/plain';

const mount = 'mount -t tmpfs -o size=24m tmpfs "$1" && shift && exec "$@"';

async function runOnSmallDisk(program: URL): Promise<string> {
  await using folder = await makeTempFolder('millrace-disk');
  const namespaces = ['--mount', ...(process.getuid?.() === 0 ? [] : ['--map-root-user'])];
  const command = [process.execPath, fileURLToPath(program)];
  const env = { ...process.env, TMPDIR: folder.path, NODE_TEST_CONTEXT: undefined };
  const options = { env, timeout: 60_000 };
  const { stdout } = await promisify(execFile)('unshare', [...namespaces, 'sh', '-c', mount, 'sh', folder.path, ...command], options);
  return stdout;
}

test('on a full disk submissions get 507, running rollouts finish, and everything goes on once there is space', async () => {
  const stdout = await runOnSmallDisk(new URL('./fill-disk.ts', import.meta.url));
  assert.deepEqual(stdout.trim().split('\n'), ['accepted', 'refused', 'finished', 'no space at all', 'accepted again', 'saved']);
});
