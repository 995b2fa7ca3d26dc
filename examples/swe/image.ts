// The image of the example: this machine's Python, git and pytest, in an unpacked directory for Apptainer. Each task gets a copy that shares
// the files of the first by hard links.

import { execFile } from 'node:child_process';
import { copyFile, mkdir, rename, rm, symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { makePythonImage } from '@millrace/testkit';

const run = promisify(execFile);

/** Besides those of the small image. */
const programs = ['git', 'patch', 'xargs', 'less'];
export const pytestVersion = '8.4.2';
/** Where pytest is in the image. */
export const pythonFolder = '/opt/python';

/** Made once: a folder that exists is complete. */
export async function makeBaseImage(folder: string): Promise<void> {
  const part = `${folder}.part`;
  await rm(part, { recursive: true, force: true });
  await makePythonImage(part);
  for (const program of programs) await addProgram(part, `/usr/bin/${program}`);
  await mkdir(join(part, 'usr/lib/git-core'), { recursive: true });
  await symlink('../../bin/git', join(part, 'usr/lib/git-core/git'));
  await run('python3', ['-m', 'pip', 'install', '--quiet', '--target', join(part, pythonFolder), `pytest==${pytestVersion}`]);
  await rename(part, folder);
}

/** A program of this machine, with its libraries. */
export async function addProgram(image: string, program: string): Promise<void> {
  await copyFile(program, join(image, 'usr/bin', basename(program)));
  const { stdout } = await run('ldd', [program]);
  for (const [, library = ''] of stdout.matchAll(/(?:=> |^\s+)(\/\S+) \(0x/gm))
    await copyFile(library, join(image, 'usr/lib', basename(library)));
}

/** `repository` becomes /testbed. */
export async function makeTaskImage(base: string, folder: string, repository: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await run('cp', ['-al', base, folder]);
  await run('cp', ['-a', repository, join(folder, 'testbed')]);
}
