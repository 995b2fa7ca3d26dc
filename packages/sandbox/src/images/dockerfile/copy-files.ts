// COPY and ADD: from the context of a build, or from another image, into the root of an image. No program of the image takes part, and no
// link in either of them leads out of its folder.

import { chmod, constants, copyFile, lstat, readdir, readlink, rm, stat, symlink } from 'node:fs/promises';
import { basename, join, posix } from 'node:path';
import { runProgram } from '@millrace/base/run-program';
import { RolloutError } from '@millrace/protocol';
import { makeFolderInside, resolveInside, resolveNew } from './inside-root.ts';
import { matchPath } from './match-path.ts';

interface CopyPlan {
  /** The root of the image that is built. */
  readonly root: string;
  /** The folder of the context, or the root of the other image. */
  readonly from: string;
  readonly sources: readonly string[];
  /** Absolute, inside the image. */
  readonly target: string;
  readonly mode?: number;
  /** Whether archives are unpacked, as ADD does. */
  readonly unpacks: boolean;
  /** Paths of the context that the build does not see. */
  ignores(path: string): boolean;
  readonly signal?: AbortSignal | undefined;
}

const archiveName = /\.(tar|tar\.gz|tgz|tar\.bz2|tbz2|tar\.xz|txz)$/;

export async function copyFiles(plan: CopyPlan): Promise<void> {
  const paths = (await Promise.all(plan.sources.map((source) => findSources(plan, source)))).flat();
  const isFolder = plan.target.endsWith('/') || paths.length > 1;
  for (const path of paths) {
    plan.signal?.throwIfAborted();
    const source = await resolveInside(plan.from, path);
    const found = await stat(source);
    if (found.isDirectory()) await copyChildren(plan, source, { path, target: plan.target });
    else if (plan.unpacks && archiveName.test(path)) await unpack(plan, source);
    else
      await copyEntry(plan, source, {
        path,
        target: isFolder || (await isFolderInside(plan)) ? posix.join(plan.target, basename(path)) : plan.target,
      });
  }
}

/** Paths without a leading slash. A source without a match is refused. */
async function findSources(plan: CopyPlan, source: string): Promise<string[]> {
  const path = posix.normalize(`/${source}`).slice(1);
  const hasPattern = /[*?[]/.test(path);
  const found = hasPattern ? await findMatches(plan, path) : [path];
  const seen = await Promise.all(
    found.map(async (one) => (plan.ignores(one) ? undefined : lstat(await resolveInside(plan.from, one)).catch(() => undefined))),
  );
  const kept = found.filter((_, index) => seen[index] !== undefined);
  if (kept.length === 0)
    throw new RolloutError(
      'sandbox-refused',
      `there is no ${source} to copy in ${plan.from}${plan.ignores(path) ? ' (.dockerignore leaves it out)' : ''}`,
    );
  return kept;
}

async function findMatches(plan: CopyPlan, pattern: string): Promise<string[]> {
  const parts = pattern.split('/');
  let found = [''];
  for (const part of parts) {
    const next: string[] = [];
    for (const folder of found) {
      if (!/[*?[]/.test(part)) {
        next.push(posix.join(folder, part));
        continue;
      }
      const names = await readdir(await resolveInside(plan.from, folder)).catch(() => []); // not a folder
      next.push(
        ...names
          .sort()
          .filter((name) => matchPath(part, name))
          .map((name) => posix.join(folder, name)),
      );
    }
    found = next;
  }
  return found;
}

async function isFolderInside({ root, target }: CopyPlan): Promise<boolean> {
  const found = await stat(await resolveInside(root, target)).catch(() => undefined); // it does not exist
  return found?.isDirectory() ?? false;
}

interface Copied {
  /** In the context or the other image, for .dockerignore. */
  readonly path: string;
  readonly target: string;
}

async function copyChildren(plan: CopyPlan, source: string, { path, target }: Copied): Promise<void> {
  await makeFolderInside(plan.root, target);
  for (const name of (await readdir(source)).sort()) {
    const child = { path: posix.join(path, name), target: posix.join(target, name) };
    await copyEntry(plan, join(source, name), child);
  }
}

async function copyEntry(plan: CopyPlan, source: string, copied: Copied): Promise<void> {
  const found = await lstat(source);
  const isIgnored = plan.ignores(copied.path);
  if (found.isDirectory()) {
    // A pattern with an exclamation mark may keep what is in an ignored folder.
    if (!isIgnored) await setMode(plan, await makeFolderInside(plan.root, copied.target), found.mode);
    else if (!(await hasKept(plan, source, copied.path))) return;
    return await copyChildren(plan, source, copied);
  }
  if (isIgnored) return;
  const target = await resolveNew(plan.root, copied.target);
  await rm(target, { force: true, recursive: true });
  if (found.isSymbolicLink()) return await symlink(await readlink(source), target);
  if (!found.isFile()) throw new RolloutError('sandbox-refused', `${copied.path} is neither a file, a folder nor a link`);
  await copyFile(source, target, constants.COPYFILE_FICLONE);
  await setMode(plan, target, found.mode);
}

async function hasKept(plan: CopyPlan, folder: string, path: string): Promise<boolean> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const child = posix.join(path, entry.name);
    if (entry.isDirectory() ? await hasKept(plan, join(folder, entry.name), child) : !plan.ignores(child)) return true;
  }
  return false;
}

function setMode({ mode }: CopyPlan, path: string, own: number): Promise<void> {
  return chmod(path, (mode ?? own) & 0o777);
}

/** GNU tar creates no file through a link of the archive that leads out of the folder. */
async function unpack(plan: CopyPlan, archive: string): Promise<void> {
  const folder = await makeFolderInside(plan.root, plan.target);
  const { signal } = plan;
  await runProgram(['tar', '--extract', '--no-same-owner', '--file', archive, '--directory', folder], { signal });
}
