// A Python environment for a trainer's own code, in the cache folder outside the clone, made once per requirements file. Requirements are
// complete and pinned, and installed without looking for more. PyTorch is that of the vLLM environment, by symbolic links: it is
// gigabytes, and one copy is enough.

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { hasVllm, vllmPython, worldCacheFolder } from '../../engines/world-cache.ts';

const run = promisify(execFile);

export interface TrainerPackages {
  /** The path of a requirements file that names every package with its version, but for PyTorch and what it depends on. */
  readonly requirements: string;
  /** Whether PyTorch is among them. */
  readonly torch: boolean;
  /** The interpreter that it is made with, if PyTorch is not among them; python3 by default. */
  readonly base?: string;
}

/** One environment for verl, TRL, SkyRL and slime. */
export const torchTrainers: TrainerPackages = { requirements: join(import.meta.dirname, 'torch-trainers.txt'), torch: true };

/** The interpreter of an environment with another version of the trainer, as `npm run test:versions` sets it. */
export const pythonVariable = 'MILLRACE_TRAINER_PYTHON';

/** PyTorch and its libraries, as folders of site-packages. */
const torchParts = /^(torch|torchgen|functorch|triton|nvidia|cuda)([-_].*)?$/;

/** Returns the path of its interpreter. The first call installs it; files with the same requirements share it. */
export async function openTrainerPython({ requirements, torch, base: given = 'python3' }: TrainerPackages): Promise<string> {
  const chosen = process.env[pythonVariable];
  if (chosen !== undefined) return chosen;
  const text = await readFile(requirements, 'utf8');
  const key = createHash('sha256')
    .update(JSON.stringify([text, torch]))
    .digest('hex')
    .slice(0, 12);
  const folder = join(worldCacheFolder(), `trainers-${basename(requirements, '.txt')}-${key}`);
  const python = join(folder, 'bin', 'python');
  if (existsSync(join(folder, '.complete'))) return python;
  if (torch && !hasVllm())
    throw new Error('PyTorch is that of the vLLM environment, which is not there; run: bash scripts/install-vllm.sh');
  await mkdir(worldCacheFolder(), { recursive: true });
  await rm(folder, { recursive: true, force: true });
  // Compiled packages fit one version of Python, so it is the one of vLLM.
  const base = torch ? await readBase(vllmPython()) : given;
  await run(base, ['-m', 'venv', folder]);
  if (torch) await linkTorch(await sitePackagesOf(vllmPython()), await sitePackagesOf(python));
  const options = ['--quiet', '--disable-pip-version-check', '--no-deps', '--no-compile'];
  await run(python, ['-m', 'pip', 'install', ...options, '-r', requirements], { maxBuffer: 1 << 26 });
  await writeFile(join(folder, '.complete'), '');
  return python;
}

export async function readBase(python: string): Promise<string> {
  const { stdout } = await run(python, ['-c', 'import os, sys; print(os.path.realpath(sys.executable))']);
  return stdout.trim();
}

export async function linkTorch(from: string, to: string): Promise<void> {
  const parts = (await readdir(from)).filter((name) => torchParts.test(name));
  await Promise.all(parts.map((name) => symlink(join(from, name), join(to, name))));
}

export async function sitePackagesOf(python: string): Promise<string> {
  const library = join(dirname(python), '..', 'lib');
  const version = (await readdir(library)).find((name) => name.startsWith('python'));
  return join(library, version ?? '', 'site-packages');
}
