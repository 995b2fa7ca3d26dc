// The executor as sandboxes mount it: a Node snapshot with all of its modules loaded, its Python program, the binaries that it loads,
// and the files of /etc that are the same in every sandbox.

import { constants } from 'node:fs';
import { access, chmod, copyFile, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { runProgram } from '../../base/run-program.ts';
import { etcContent, snapshotFlags } from '../layout.ts';
import { exists, fingerprintFile, hashContent, makeOnce } from '../run-folder/make-once.ts';
import { makeSandboxId } from '../run-folder/run-folder.ts';
import { readExecutor } from './executor-bundle.ts';

const snapshotTimeoutMs = 60_000;

/** Returns the folder. Its `snapshot` is the executor, for this Node and copies of it. */
export async function writeExecutorFiles(runDir: string, nodePath: string): Promise<string> {
  const { bundle, files, binaries } = await readExecutor();
  const prints = await Promise.all([nodePath, ...binaries].map(fingerprintFile));
  const content = [...prints, bundle, files, etcContent, writeSnapshot.toString(), snapshotFlags];
  return makeOnce(runDir, { kind: 'executor', content }, async (scratch) => {
    await mkdir(join(scratch, 'etc'));
    for (const [name, text] of Object.entries(etcContent)) await writeFile(join(scratch, 'etc', name), text);
    for (const { name, text } of files) await writeFile(join(scratch, name), text);
    for (const path of binaries) await copyFile(path, join(scratch, basename(path)));
    await writeFile(join(scratch, 'main.js'), bundle);
    await writeSnapshot(scratch, nodePath);
  });
}

/**
 * A snapshot of Node with the executor loaded but not started: starting from it takes 14 ms less. Node's code cache is left out. It is
 * larger than everything else, and reading it takes longer than compiling the code that is needed.
 */
async function writeSnapshot(folder: string, nodePath: string): Promise<void> {
  const config = join(folder, 'snapshot.json');
  await writeFile(config, JSON.stringify({ builder: join(folder, 'main.js'), withoutCodeCache: true }));
  const command = [nodePath, ...snapshotFlags, '--snapshot-blob', join(folder, 'snapshot'), '--build-snapshot-config', config];
  await runProgram(command, { env: {}, timeoutMs: snapshotTimeoutMs });
  await rm(config);
}

/**
 * A copy of a program in the run folder that is executable but not readable: the kernel lets no process trace a process, or open its
 * memory and files, if it may not read that process's program. Sandboxes mount the copy read-only, so they cannot change that.
 */
export async function writeHiddenProgram(path: string, runDir: string): Promise<string> {
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
