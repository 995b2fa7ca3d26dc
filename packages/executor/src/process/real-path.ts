// Where an open file or folder of the sandbox really is, and whether a path may lead there. The agent makes links, so a result that is read
// by its path must not come from the files of the kernel, or from outside the home folder if its path is in there.

import { readlink } from 'node:fs/promises';
import { CallError } from '../wire/call-error.ts';

const kernelFolders = ['/proc', '/sys', '/dev'];

/** Of what is open, so that it cannot change between the check and the reading. */
export function realPathOf(fd: number): Promise<string> {
  return readlink(`/proc/self/fd/${fd}`);
}

/** Throws `not-found` if links led from `path` to a place that it must not reach. */
export function refuseOutside(path: string, real: string, home: string): void {
  if (real === path) return;
  const leavesHome = isIn(path, home) && !isIn(real, home);
  if (leavesHome || kernelFolders.some((folder) => isIn(real, folder)))
    throw new CallError('not-found', `${path} is a link, or in one, to ${real.slice(0, 200)}, which is outside`);
}

function isIn(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}
