// A Python environment with packages from PyPI in the cache folder of the second test tier, made once per list of packages.

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { worldCacheFolder } from './world-cache.ts';

const run = promisify(execFile);

interface Packages {
  readonly name: string;
  readonly packages: readonly string[];
  /** Installed without what they depend on. */
  readonly alone?: readonly string[];
  /** The interpreter that it is made with; python3 by default. */
  readonly base?: string;
}

/** Returns the path of its interpreter. Throws if PyPI cannot be reached. */
export async function openPython({ name, packages, alone = [], base = 'python3' }: Packages): Promise<string> {
  const key = createHash('sha256')
    .update(JSON.stringify([packages, alone]))
    .digest('hex')
    .slice(0, 12);
  const folder = join(worldCacheFolder(), `${name}-${key}`);
  const python = join(folder, 'bin', 'python');
  if (existsSync(join(folder, '.complete'))) return python;
  await mkdir(worldCacheFolder(), { recursive: true });
  await rm(folder, { recursive: true, force: true });
  await run(base, ['-m', 'venv', folder]);
  const install = (...args: string[]) =>
    run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...args], { maxBuffer: 1 << 26 });
  if (packages.length > 0) await install(...packages);
  if (alone.length > 0) await install('--no-deps', ...alone);
  await writeFile(join(folder, '.writing'), '');
  await rename(join(folder, '.writing'), join(folder, '.complete'));
  return python;
}

/** Runs a script with JSON on its standard input, and parses the last line that it prints. */
export async function askPython(python: string, script: string, input: unknown): Promise<unknown> {
  const child = run(python, [script], { maxBuffer: 1 << 28 });
  child.child.stdin?.end(JSON.stringify(input));
  const { stdout } = await child;
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? 'null');
}
