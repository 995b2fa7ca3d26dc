// The executor as sandboxes mount it: a snapshot of Node with all of its modules loaded, its Python program, the binary of its PTY library,
// and the few files of /etc that are made up, in one folder named by its content.
// Made once for each content, by whichever worker comes first; a half-made folder is never seen under that name.

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { access, chmod, copyFile, mkdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { etcContent } from './bubblewrap-arguments.ts';
import { readExecutor } from './executor-bundle.ts';
import { snapshotFlags } from './layout.ts';
import { makeSandboxId } from './orphans.ts';

const snapshotTimeoutMs = 60_000;

/** Answers the folder, in which `snapshot` is the executor, for this Node and its copies. */
export async function writeExecutorFiles(runDir: string, nodePath: string): Promise<string> {
  const { bundle, files, binary } = await readExecutor();
  const { size, mtimeMs } = await stat(nodePath);
  const hash = createHash('sha256').update(JSON.stringify([nodePath, size, mtimeMs, snapshotFlags, bundle, files, etcContent]));
  return makeOnce(join(runDir, `executor-${hash.digest('hex').slice(0, 12)}`), async (scratch) => {
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
  const args = [...snapshotFlags, '--snapshot-blob', join(folder, 'snapshot'), '--build-snapshot-config', config];
  await promisify(execFile)(nodePath, args, { env: {}, timeout: snapshotTimeoutMs });
  await rm(config);
}

/** Fills a folder under a name that is swept if we die, then gives it its own. */
export async function makeOnce(folder: string, fill: (scratch: string) => Promise<void>): Promise<string> {
  if (await isThere(folder)) return folder;
  const scratch = join(dirname(folder), makeSandboxId());
  await mkdir(scratch, { recursive: true });
  try {
    await fill(scratch);
    await rename(scratch, folder);
  } catch (error) {
    await rm(scratch, { recursive: true, force: true });
    if (!(await isThere(folder))) throw error; // otherwise another worker was first, with the same content
  }
  return folder;
}

/**
 * A copy of a program that can be run and not read, in the run folder: the kernel lets nobody trace, or look into the memory and
 * the open files of, a process whose program they may not read. Sandboxes mount it read-only, so that it stays so.
 */
export async function writeHiddenProgram(path: string, runDir: string): Promise<string> {
  const { size, mtimeMs } = await stat(path);
  const name = createHash('sha256').update(`${path} ${size} ${mtimeMs}`).digest('hex').slice(0, 12);
  const copy = join(runDir, `program-${name}`);
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

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
