// What an image that is built from a Dockerfile depends on: its text, the files of its context, and local images that it starts from. The
// folder's own path is not part of it, so tasks with equal environments share one image.

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { lstat, readdir, readFile, readlink, stat } from 'node:fs/promises';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { hashContent } from '../../run-folder/make-once.ts';
import { parseDockerfile } from './dockerfile.ts';
import { planStages } from './stages.ts';

/** Throws `sandbox-refused` with file and line for a Dockerfile that cannot be built. */
export async function keyOfDockerfile(path: string): Promise<string> {
  const text = await readFile(path, 'utf8');
  const { stages } = planStages(parseDockerfile(text, path), path);
  const names = stages.flatMap(({ base, steps }) => [
    ...(base.kind === 'image' ? [base.name] : []),
    ...steps.flatMap(({ flags }) => flags.from ?? []),
  ]);
  const local = names.filter(isLocalImage).map(async (name) => {
    const found = await stat(resolve(dirname(path), name)).catch(() => undefined); // the build reports it
    return [name, found?.ino, found?.size, found?.mtimeMs];
  });
  return hashContent([text, await digestFolder(dirname(path)), await Promise.all(local)]);
}

/** A path: no name in a registry starts like this. */
export function isLocalImage(name: string): boolean {
  return isAbsolute(name) || name.startsWith('./') || name.startsWith('../');
}

/** A hash of all paths, modes, links and contents. */
export async function digestFolder(folder: string): Promise<string> {
  const hash = createHash('sha256');
  const add = async (path: string, name: string): Promise<void> => {
    const found = await lstat(path);
    hash.update(
      JSON.stringify([name, found.mode & 0o111, found.isDirectory(), found.isSymbolicLink() ? await readlink(path) : found.size]),
    );
    if (found.isFile()) for await (const chunk of createReadStream(path)) hash.update(chunk);
    if (found.isDirectory()) for (const child of (await readdir(path)).sort()) await add(join(path, child), `${name}/${child}`);
  };
  await add(folder, '.');
  return hash.digest('hex').slice(0, 32);
}
