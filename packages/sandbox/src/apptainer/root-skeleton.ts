// The root of an Apptainer sandbox, an overlay that is mounted before Apptainer starts: the image, and under it a skeleton with a mount point
// for everything that is mounted later. Apptainer can stack any image itself, but then ordinary users cannot remove folders, and for root the
// kernel changes the options of the disk's file system, for which ext4 waits 10 ms or more.

import { lstat, mkdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { executorFiles, executorFolder, executorProgram, harnessFolder, home, linkFolder } from '../layout.ts';
import { makeOnce } from '../run-folder/make-once.ts';

const files = [executorProgram, '/etc/hosts', '/etc/resolv.conf'];
const leaves = ['/dev', '/proc', '/tmp', '/var/tmp', home, executorFiles, linkFolder, executorFolder, harnessFolder, ...files.map(dirname)];
const folders = [...new Set(leaves.flatMap(listFolders))];

/** The folder and its parents, the outermost first. */
function listFolders(path: string): string[] {
  return path === '/' ? [] : [...listFolders(dirname(path)), path];
}

/** Returns the skeleton's folder. */
export async function writeSkeleton(runDir: string): Promise<string> {
  return makeOnce(runDir, { kind: 'skeleton', content: [folders, files] }, async (scratch) => {
    for (const path of folders) await mkdir(join(scratch, path));
    for (const path of files) await writeFile(join(scratch, path), '');
  });
}

/** Whether the image is an unpacked directory that has no link or file where the skeleton has a folder, and a path without separators of mount options. */
export async function isStackable(image: string): Promise<boolean> {
  if (/[:,\\]/.test(image) || !(await stat(image)).isDirectory()) return false;
  const read = (path: string) => lstat(join(image, path)).catch(() => undefined);
  const [foundFolders, foundFiles] = await Promise.all([Promise.all(folders.map(read)), Promise.all(files.map(read))]);
  return foundFolders.every((found) => found?.isDirectory() ?? true) && foundFiles.every((found) => found?.isFile() ?? true);
}
