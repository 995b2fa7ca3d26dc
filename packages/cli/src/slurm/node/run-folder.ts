// The folder of a node's running sandboxes: on a disk of the node, with a name of its own for each job, and gone when the job ends.

import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { SlurmConfig } from '@millrace/server';

interface RunFolder extends AsyncDisposable {
  readonly path: string;
}

/** Short, because sockets lie in it. */
export async function makeRunFolder({ temp }: SlurmConfig, name: string): Promise<RunFolder> {
  const path = await mkdtemp(join(temp, `mr-${name.slice(0, 12)}-`));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}
