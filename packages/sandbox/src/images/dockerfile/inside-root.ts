// Paths inside a folder that holds the root of an image, or the context of a build. Links are followed as a process inside would follow
// them, so no path leads out of the folder.

import { lstat, mkdir, readlink } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { RolloutError } from '@millrace/protocol';

const maxLinks = 40;

/** The path on this machine of an absolute path inside. Parts that do not exist are kept as they are. */
export async function resolveInside(root: string, path: string): Promise<string> {
  const left = posix.normalize(`/${path}`).split('/').filter(Boolean);
  let inside = '/';
  let links = 0;
  while (left.length > 0) {
    const next = posix.join(inside, left.shift() ?? '');
    const stat = await lstat(join(root, next)).catch(() => undefined); // it does not exist
    if (!stat?.isSymbolicLink()) {
      inside = next;
      continue;
    }
    links += 1;
    if (links > maxLinks) throw new RolloutError('sandbox-refused', `${path} has more than ${maxLinks} links`);
    const target = posix.resolve(inside, await readlink(join(root, next)));
    left.unshift(...target.split('/').filter(Boolean));
    inside = '/';
  }
  return join(root, inside);
}

/** Creates the folder and its parents. Returns its path on this machine. */
export async function makeFolderInside(root: string, path: string): Promise<string> {
  const folder = await resolveInside(root, path);
  const made = await mkdir(folder, { recursive: true, mode: 0o755 }).catch((error) => {
    throw new RolloutError('sandbox-refused', `${path} cannot be created in the image: ${error.code ?? error.message}`);
  });
  return made === undefined ? folder : await resolveInside(root, path);
}

/** Where a file or link with this path is created: its folder is resolved and created, its own name is not followed. */
export async function resolveNew(root: string, path: string): Promise<string> {
  const normal = posix.normalize(`/${path}`);
  return join(await makeFolderInside(root, dirname(normal)), posix.basename(normal));
}
