// Removes a folder with everything in it, without following links.

import { rm } from 'node:fs/promises';
import { runProgram } from '@millrace/base/run-program';

/** Falls back to rm(1) for trees whose folders are not accessible or whose paths are too long for Node. */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true });
  } catch {
    await runProgram(['chmod', '-R', 'u+rwX', '--', path]).catch(() => {}); // rm reports what is left
    await runProgram(['rm', '-rf', '--', path]);
  }
}
