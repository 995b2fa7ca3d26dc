// The folder that the sandboxes of all tests of one run start from; see `seedRunFolder` of the testkit.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { seedVariable } from '@millrace/testkit/plain';

/** Sets the variable for the processes of the tests. Where no sandbox can be started nothing is shared, and the tests of the driver say why. */
export function openSeed(): Disposable {
  const path = mkdtempSync(join(tmpdir(), 'mr-seed-'));
  const { status } = spawnSync(process.execPath, [join(import.meta.dirname, 'make-seed.ts'), path], { stdio: 'ignore', timeout: 60_000 });
  if (status === 0) process.env[seedVariable] = path;
  return { [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
