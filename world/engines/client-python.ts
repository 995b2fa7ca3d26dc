// A Python with the packages that clients of others use, from PyPI, in the cache folder outside the clone. The first call installs it.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { worldCacheFolder } from './world-cache.ts';

const run = promisify(execFile);

/** The requirements, each pinned; their names and versions are the name of the folder. */
export async function openClientPython(requirements: readonly string[]): Promise<string> {
  const folder = join(worldCacheFolder(), `python-${requirements.join('-').replaceAll('==', '-')}`);
  const python = join(folder, 'bin', 'python');
  if (existsSync(join(folder, '.complete'))) return python;
  await mkdir(worldCacheFolder(), { recursive: true });
  // Paths inside a virtual environment are fixed, so it is made in place, and what an earlier run left half done is removed.
  if (existsSync(folder)) await rename(folder, `${folder}.old-${process.pid}`);
  await rm(`${folder}.old-${process.pid}`, { recursive: true, force: true });
  await run('python3', ['-m', 'venv', folder]);
  await run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...requirements]);
  await writeFile(join(folder, '.complete'), '');
  return python;
}
