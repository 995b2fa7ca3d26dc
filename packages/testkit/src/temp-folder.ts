// A temporary folder that removes itself: `await using folder = await makeTempFolder('store')`.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface TempFolder extends AsyncDisposable {
  readonly path: string;
}

export async function makeTempFolder(name: string): Promise<TempFolder> {
  const path = await mkdtemp(join(tmpdir(), `${name}-`));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true, maxRetries: 3 }) };
}
