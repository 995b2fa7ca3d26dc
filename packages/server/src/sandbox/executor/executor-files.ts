// The executor as sandboxes mount it: a snapshot of Node with all of its modules loaded, its Python program, the binary of its PTY library,
// and the few files of /etc that are made up.

import { constants } from 'node:fs';
import { access, chmod, copyFile, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { runProgram } from '../../base/run-program.ts';
import { etcContent, snapshotFlags } from '../layout.ts';
import { isThere, makeOnce, markFile, nameContent } from '../run-folder/make-once.ts';
import { makeSandboxId } from '../run-folder/run-folder.ts';
import { readExecutor } from './executor-bundle.ts';

const snapshotTimeoutMs = 60_000;

/** Answers the folder, in which `snapshot` is the executor, for this Node and its copies. */
export async function writeExecutorFiles(runDir: string, nodePath: string): Promise<string> {
  const { bundle, files, binary } = await readExecutor();
  const content = [await markFile(nodePath), await markFile(binary), bundle, files, etcContent, writeSnapshot.toString(), snapshotFlags];
  return makeOnce(runDir, { kind: 'executor', content }, async (scratch) => {
    await mkdir(join(scratch, 'etc'));
    for (const [name, text] of Object.entries(etcContent)) await writeFile(join(scratch, 'etc', name), text);
    for (const { name, text } of files) await writeFile(join(scratch, name), text);
    await copyFile(binary, join(scratch, basename(binary)));
    await writeFile(join(scratch, 'main.js'), bundle);
    await writeSnapshot(scratch, nodePath);
  });
}

/**
 * Of Node when it has loaded the executor and not yet begun: to start from it takes 14 ms less. Without Node's own code cache, which is
 * larger than all the rest and takes longer to read than what is needed of it takes to compile.
 */
async function writeSnapshot(folder: string, nodePath: string): Promise<void> {
  const config = join(folder, 'snapshot.json');
  await writeFile(config, JSON.stringify({ builder: join(folder, 'main.js'), withoutCodeCache: true }));
  const command = [nodePath, ...snapshotFlags, '--snapshot-blob', join(folder, 'snapshot'), '--build-snapshot-config', config];
  await runProgram(command, { env: {}, timeoutMs: snapshotTimeoutMs });
  await rm(config);
}

/**
 * A copy of a program that can be run and not read, in the run folder: the kernel lets nobody trace, or look into the memory and
 * the open files of, a process whose program they may not read. Sandboxes mount it read-only, so that it stays so.
 */
export async function writeHiddenProgram(path: string, runDir: string): Promise<string> {
  const copy = join(runDir, `program-${nameContent(await markFile(path))}`);
  if (await isThere(copy)) return copy;
  const scratch = join(runDir, makeSandboxId());
  await copyFile(path, scratch);
  await chmod(scratch, 0o111);
  const runs = await access(scratch, constants.X_OK).then(
    () => true,
    () => false,
  );
  if (!runs) {
    await rm(scratch);
    return path; // the run folder's disk runs no programs: then the executor is only as safe as process 1 is
  }
  await rename(scratch, copy); // whoever comes second replaces it by its like
  return copy;
}
