// The executor as sandboxes mount it: its program, and its Python program.

import { constants } from 'node:fs';
import { access, chmod, copyFile, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findParts } from '@millrace/base/parts';
import { exists, fingerprintFile, hashContent, makeOnce } from '../run-folder/make-once.ts';
import { makeSandboxId } from '../run-folder/run-folder.ts';

export interface ExecutorFiles {
  /** Executable but not readable. */
  readonly program: string;
  /** The folder with the Python program. */
  readonly folder: string;
}

export async function writeExecutorFiles(runDir: string): Promise<ExecutorFiles> {
  const program = await writeHiddenProgram(await findExecutor(), runDir);
  const host = await readFile(findParts().pythonHost, 'utf8');
  const folder = await makeOnce(runDir, { kind: 'executor', content: host }, async (scratch) => {
    await writeFile(join(scratch, 'ipython_host.py'), host);
  });
  return { program, folder };
}

/** Throws if it is not built. */
export async function findExecutor(): Promise<string> {
  const path = fileURLToPath(findParts().executor);
  await access(path, constants.R_OK).catch((error) => {
    throw new Error(`the executor is not built: ${path} cannot be read`, { cause: error });
  });
  return path;
}

/**
 * A copy of a program in the run folder that is executable but not readable: the kernel lets no process trace a process, or open its
 * memory and files, if it may not read that process's program. Sandboxes mount the copy read-only, so they cannot change that.
 */
async function writeHiddenProgram(path: string, runDir: string): Promise<string> {
  const copy = join(runDir, `program-${hashContent(await fingerprintFile(path))}`);
  if (await exists(copy)) return copy;
  const scratch = join(runDir, makeSandboxId());
  await copyFile(path, scratch);
  await chmod(scratch, 0o111);
  const isExecutable = await access(scratch, constants.X_OK).then(
    () => true,
    () => false,
  );
  if (!isExecutable) {
    await rm(scratch);
    return path; // the run folder's disk is mounted noexec: then only being process 1 protects the executor
  }
  await rename(scratch, copy); // a second worker replaces it with an equal file
  return copy;
}
