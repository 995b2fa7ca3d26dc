// The Apptainer driver for an ordinary user: runs apptainer.test.ts again as a user without a home, a group or a subuid range.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chown, mkdir } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { findApptainer } from '@millrace/server';
import { makeTempFolder } from '@millrace/testkit';

const userId = 65534;
const repository = resolve(import.meta.dirname, '../../../../..');
const skip =
  process.getuid?.() !== 0
    ? 'only root can become another user; apptainer.test.ts has run as this one'
    : findApptainer() === undefined
      ? 'neither apptainer nor singularity is in PATH'
      : false;

test('every test of the Apptainer driver passes for an ordinary user too', { skip }, async () => {
  await using temp = await makeTempFolder('user');
  const folder = temp.path;
  await chown(folder, userId, userId);
  const view = join(folder, 'repository');
  await mkdir(view);
  // Mounted in a separate namespace where that user can read it: the repository may be in a folder that only root can enter.
  const become = `mount --bind "$1" "$2" && cd "$2" && exec setpriv --reuid ${userId} --regid ${userId} --clear-groups "\${@:3}"`;
  const node = join(view, relative(repository, process.execPath));
  const file = join(view, relative(repository, join(import.meta.dirname, 'apptainer.test.ts')));
  const argv = ['--mount', 'bash', '-c', become, 'bash', repository, view, node, '--test', '--test-reporter=tap', file];
  const env = { PATH: process.env.PATH, HOME: folder, TMPDIR: folder };
  const { stdout } = await promisify(execFile)('unshare', argv, { env, maxBuffer: 1 << 26 }).catch((error) => error);
  const count = (what: string) => Number(new RegExp(`^# ${what} (\\d+)$`, 'm').exec(stdout)?.[1]);
  assert.deepEqual([count('fail'), count('skipped'), count('cancelled')], [0, 0, 0], stdout);
  assert.ok(count('pass') > 50, stdout);
});
