// A Python environment with one version of one trainer, in a cache folder outside the clone, made once. MILLRACE_VERSIONS_CACHE names another
// folder.

import { execFile, execFileSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { vllmPython } from '../engines/world-cache.ts';
import { linkTorch, readBase, sitePackagesOf } from '../trainers/bed/trainer-python.ts';
import { type Cell, nameOf } from './matrix.ts';

const run = promisify(execFile);

function versionsFolder(): string {
  return process.env.MILLRACE_VERSIONS_CACHE ?? join(homedir(), '.cache/millrace/versions');
}

/** The path of its interpreter. */
export async function openEnvironment(cell: Cell): Promise<string> {
  const folder = join(versionsFolder(), nameOf(cell));
  const python = join(folder, 'bin', 'python');
  if (existsSync(join(folder, '.complete'))) return python;
  const base = cell.torch ? await readBase(vllmPython()) : findPython(cell.python);
  if (base === undefined) throw new Error(`there is no Python ${cell.python} on this machine`);
  await rm(folder, { recursive: true, force: true });
  await mkdir(versionsFolder(), { recursive: true });
  const uv = await openUv();
  await run(uv, ['venv', '--quiet', '--python', base, folder]);
  if (cell.torch) await linkTorch(await sitePackagesOf(vllmPython()), await sitePackagesOf(python));
  const packages = await packagesOf(cell, folder);
  await run(uv, ['pip', 'install', '--quiet', '--python', python, '--link-mode', 'hardlink', ...packages], { maxBuffer: 1 << 26 });
  await writeFile(join(folder, '.complete'), '');
  return python;
}

/** It resolves and installs in a tenth of the time of pip. */
async function openUv(): Promise<string> {
  const tools = join(versionsFolder(), 'tools');
  const uv = join(tools, 'bin', 'uv');
  if (existsSync(uv)) return uv;
  await run('python3', ['-m', 'venv', tools]);
  await run(join(tools, 'bin', 'python'), ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', 'uv']);
  return uv;
}

async function packagesOf({ package: name, version, requirements, more = [] }: Cell, folder: string): Promise<string[]> {
  if (requirements === undefined) return [`${name}==${version}`, ...more];
  const pinned = (await readFile(requirements, 'utf8')).replace(new RegExp(`^${name}==.*$`, 'm'), `${name}==${version}`);
  const file = join(folder, 'requirements.txt');
  await writeFile(file, pinned);
  return ['--no-deps', '-r', file, ...more];
}

/** Of several that pyenv has, the newest: NeMo Gym asks for 3.13.14. */
function findPython(version: string): string | undefined {
  const installed = globSync(join(homedir(), `.pyenv/versions/${version}.*/bin/python3`));
  const newestFirst = installed.sort((one, other) => other.localeCompare(one, 'en', { numeric: true }));
  return [...newestFirst, `python${version}`, 'python3'].find((python) => isVersion(python, version));
}

function isVersion(python: string, version: string): boolean {
  try {
    const code = 'import sys; print("%d.%d" % sys.version_info[:2])';
    return execFileSync(python, ['-c', code], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim() === version;
  } catch {
    return false; // It is not there.
  }
}
