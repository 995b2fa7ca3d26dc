// The root of an Apptainer sandbox, stacked by the kernel before Apptainer starts: on the image, and on a skeleton below it that has a place for
// whatever is mounted later. Apptainer could stack any image by itself, but for an ordinary user such that folders cannot be removed, and for
// root in a way that makes the kernel change the options of the disk's file system, for which ext4 waits 10 ms and more.

import { lstat, mkdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { home, libraryFolder, linkFolder, ownFolder, program, programFiles } from '../layout.ts';
import { makeOnce } from '../run-folder/make-once.ts';

const files = [program, '/etc/hosts', '/etc/resolv.conf'];
const leaves = ['/dev', '/proc', '/tmp', '/var/tmp', home, programFiles, libraryFolder, linkFolder, ownFolder, ...files.map(dirname)];
const folders = [...new Set(leaves.flatMap(listFolders))];

/** The folder and those that it is in, the outermost first. */
function listFolders(path: string): string[] {
  return path === '/' ? [] : [...listFolders(dirname(path)), path];
}

/** Answers its folder. */
export async function writeSkeleton(runDir: string): Promise<string> {
  return makeOnce(runDir, { kind: 'skeleton', content: [folders, files] }, async (scratch) => {
    for (const path of folders) await mkdir(join(scratch, path));
    for (const path of files) await writeFile(join(scratch, path), '');
  });
}

/** An unpacked directory that hides no place of the skeleton behind something else, under a path that an overlay takes for one. */
export async function isStackable(image: string): Promise<boolean> {
  if (/[:,\\]/.test(image) || !(await stat(image)).isDirectory()) return false;
  const look = (path: string) => lstat(join(image, path)).catch(() => undefined);
  const [foundFolders, foundFiles] = await Promise.all([Promise.all(folders.map(look)), Promise.all(files.map(look))]);
  return foundFolders.every((found) => found?.isDirectory() ?? true) && foundFiles.every((found) => found?.isFile() ?? true);
}
