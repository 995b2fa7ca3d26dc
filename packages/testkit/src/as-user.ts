// Runs a test file again as an ordinary user: one without a home, a group, a subuid range, capabilities or control groups.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chown, mkdir } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { promisify } from 'node:util';
import { definedOf } from '@millrace/protocol';
import { makeTempFolder } from './temp-folder.ts';

const userId = 65534;
const repository = resolve(import.meta.dirname, '../../..');

/** Why a test file cannot be run as another user here; false if it can. */
export const skipAsUser =
  process.getuid?.() === 0 ? (false as const) : 'only root can become another user; the file itself runs as this one';

/** Throws with the output of the file if a test in it fails or is skipped, or if it has fewer tests than `least`. */
export async function runAsUser(file: string, { least }: { readonly least: number }): Promise<void> {
  await using temp = await makeTempFolder('user');
  const folder = temp.path;
  await chown(folder, userId, userId);
  const view = join(folder, 'repository');
  await mkdir(view);
  // Mounted in a separate namespace where that user can read it: the repository may be in a folder that only root can enter.
  const become = `mount --bind "$1" "$2" && cd "$2" && exec setpriv --reuid ${userId} --regid ${userId} --clear-groups "\${@:3}"`;
  const toView = (path: string) => join(view, relative(repository, path));
  const run = [toView(process.execPath), '--test', '--test-reporter=tap', toView(file)];
  const { PATH, MILLRACE_ATTACK_SECONDS, MILLRACE_ATTACK_SEED } = process.env;
  const env = definedOf({ PATH, MILLRACE_ATTACK_SECONDS, MILLRACE_ATTACK_SEED, HOME: folder, TMPDIR: folder });
  const argv = ['--mount', 'bash', '-c', become, 'bash', repository, view, ...run];
  const { stdout } = await promisify(execFile)('unshare', argv, { env, maxBuffer: 1 << 26 }).catch((error) => error);
  const count = (what: string) => Number(new RegExp(`^# ${what} (\\d+)$`, 'm').exec(stdout)?.[1]);
  assert.deepEqual([count('fail'), count('skipped'), count('cancelled')], [0, 0, 0], stdout);
  assert.ok(count('pass') >= least, stdout);
}
