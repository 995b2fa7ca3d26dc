// What all sandboxes of a run folder share is made once, in a folder named by its content, by whichever worker comes first; a half-made
// folder is never seen under that name.

import { createHash } from 'node:crypto';
import { mkdir, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { makeSandboxId, removeTree } from './run-folder.ts';

/** A name for whatever JSON can tell apart. */
export function nameContent(content: unknown): string {
  return createHash('sha256').update(JSON.stringify(content)).digest('hex').slice(0, 16);
}

/** What is different when the file at this path has been replaced. */
export async function markFile(path: string): Promise<unknown> {
  const { size, mtimeMs } = await stat(path);
  return [path, size, mtimeMs];
}

/** Answers the folder. It is filled under a name that is swept if we die. */
export async function makeOnce(
  runDir: string,
  { kind, content }: { readonly kind: string; readonly content: unknown },
  fill: (scratch: string) => Promise<void>,
): Promise<string> {
  const folder = join(runDir, `${kind}-${nameContent(content)}`);
  if (await isThere(folder)) return folder;
  const scratch = join(runDir, makeSandboxId());
  await mkdir(scratch, { recursive: true });
  try {
    await fill(scratch);
    await rename(scratch, folder);
  } catch (error) {
    await removeTree(scratch);
    if (!(await isThere(folder))) throw error; // otherwise another worker was first, with the same content
  }
  return folder;
}

export async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
