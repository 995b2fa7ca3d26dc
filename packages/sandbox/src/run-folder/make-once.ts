// Files that all sandboxes of a run folder share are made once, by the first worker that needs them, in a folder named after a hash of
// their content. A half-made folder never has that name.

import { createHash } from 'node:crypto';
import { mkdir, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { removeTree } from './remove-tree.ts';
import { makeSandboxId } from './run-folder.ts';

/** A short hash of any JSON value. */
export function hashContent(content: unknown): string {
  return createHash('sha256').update(JSON.stringify(content)).digest('hex').slice(0, 16);
}

/** A value that changes when the file is replaced. */
export async function fingerprintFile(path: string): Promise<unknown> {
  const { size, mtimeMs } = await stat(path);
  return [path, size, mtimeMs];
}

/** Returns the folder. It is filled under a name that a sweep removes if this process dies. */
export async function makeOnce(
  runDir: string,
  { kind, content }: { readonly kind: string; readonly content: unknown },
  fill: (scratch: string) => Promise<void>,
): Promise<string> {
  const folder = join(runDir, `${kind}-${hashContent(content)}`);
  if (await exists(folder)) return folder;
  const scratch = join(runDir, makeSandboxId());
  await mkdir(scratch, { recursive: true });
  try {
    await fill(scratch);
    await rename(scratch, folder);
  } catch (error) {
    await removeTree(scratch);
    if (!(await exists(folder))) throw error; // otherwise another worker made it first
  }
  return folder;
}

export async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
