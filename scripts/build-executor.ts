// Compiles the executor, by default into packages/sandbox/dist: one static program for each architecture, named after it, and the Python
// host next to them. It takes seconds, and nothing if the sources have not changed.

import { execFileSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { copyFile, mkdir, rename, stat } from 'node:fs/promises';
import { arch } from 'node:os';
import { join } from 'node:path';

const executor = join(import.meta.dirname, '../packages/sandbox');
const native = join(executor, 'native');

/** `-static`: it runs in any image, with any C library or none. The rest makes equal sources give equal bytes, and warnings fail. */
const flags = [
  ...['-std=c11', '-D_GNU_SOURCE', '-O2', '-static', '-s', '-Wl,--build-id=none', '-Wl,-z,noexecstack'],
  ...['-fstack-protector-strong', '-D_FORTIFY_SOURCE=2', '-ffunction-sections', '-Wl,--gc-sections'],
  ...['-Wall', '-Wextra', '-Wshadow', '-Wconversion', '-Wno-sign-conversion', '-Wvla', '-Werror'],
];

/** Debian's cross compilers. */
const crossPackages = {
  x64: 'gcc-x86-64-linux-gnu libc6-dev-amd64-cross',
  arm64: 'gcc-aarch64-linux-gnu libc6-dev-arm64-cross',
} as const;

const targets = { x64: 'x86_64-linux-gnu-gcc', arm64: 'aarch64-linux-gnu-gcc' } as const;
type Architecture = keyof typeof targets;

/** The sources of the executor, without those of its tests. */
export function listSources(): string[] {
  return globSync('**/*.c', { cwd: native, exclude: ['test/**'] })
    .sort()
    .map((name) => join(native, name));
}

/** For this machine, or for every architecture that is published. */
export async function buildExecutor(folder = join(executor, 'dist'), wanted: readonly Architecture[] = [ownTarget()]): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const target of wanted) await compile(target, folder);
  await copyFile(join(executor, 'python/ipython_host.py'), join(folder, 'ipython_host.py'));
}

export const everyTarget = Object.keys(targets) as Architecture[];

function ownTarget(): Architecture {
  const own = arch();
  if (own === 'x64' || own === 'arm64') return own;
  throw new Error(`there is no executor for ${own}: Millrace runs on x64 and arm64`);
}

async function compile(target: Architecture, folder: string): Promise<void> {
  const compiler = target === arch() ? 'cc' : targets[target];
  const file = join(folder, `executor-${target}`);
  if (await isNewest(file)) return;
  const scratch = `${file}.${process.pid}`;
  try {
    execFileSync(compiler, [...flags, '-o', scratch, ...listSources()], { cwd: native, stdio: ['ignore', 'inherit', 'inherit'] });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    const packages = target === arch() ? 'gcc libc6-dev' : crossPackages[target];
    throw new Error(`the executor needs ${compiler}: sudo apt-get install -y ${packages}`, { cause: error });
  }
  await rename(scratch, file);
}

async function isNewest(file: string): Promise<boolean> {
  const sources = globSync('**/*.{c,h}', { cwd: native }).map((name) => join(native, name));
  const built = await stat(file).catch(() => undefined); // the first build finds none
  const times = await Promise.all([import.meta.filename, ...sources].map(async (path) => (await stat(path)).mtimeMs));
  return built !== undefined && times.every((time) => time < built.mtimeMs);
}

if (import.meta.main) await buildExecutor();
