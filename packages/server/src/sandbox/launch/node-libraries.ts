// Node's own libraries and loader, copied from this machine into one folder: with them the executor runs in any image, whatever C
// library the image has, or none. The image's own programs never use them.

import { chmod, copyFile, readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { runProgram } from '../../base/run-program.ts';
import { makeOnce, markFile } from '../run-folder/make-once.ts';

export interface NodeLibraries {
  readonly folder: string;
  /** The loader's file in that folder. */
  readonly loader: string;
}

/** What `nodePath` needs, and what the binaries among the executor's files need. */
export async function writeNodeLibraries(runDir: string, nodePath: string, executorFiles: string): Promise<NodeLibraries> {
  const names = (await readdir(executorFiles, { recursive: true })).filter((name) => name.endsWith('.node'));
  const stdout = await runProgram(['ldd', nodePath, ...names.map((name) => join(executorFiles, name))]);
  const paths = [...new Set([...stdout.matchAll(/(?:=> |^\s+)(\/\S+) \(0x/gm)].flatMap(([, path]) => path ?? []))].sort();
  const loader = paths.find((path) => /^ld-/.test(basename(path)));
  if (loader === undefined) throw new Error(`ldd ${nodePath} names no loader: ${stdout}`);
  const content = [await Promise.all(paths.map(markFile)), 'hidden'];
  const folder = await makeOnce(runDir, { kind: 'libraries', content }, async (scratch) => {
    for (const path of paths) await copyFile(path, join(scratch, basename(path)));
    // To be run and not read: the loader is the program that the kernel starts, and so nobody may trace what runs in it.
    await chmod(join(scratch, basename(loader)), 0o111);
  });
  return { folder, loader: basename(loader) };
}
