// Makes Harbor folders of tasks of Terminal-Bench from its source distribution on PyPI, and an image in the place of its base images:
// `node examples/terminal-bench/make.ts FOLDER` writes FOLDER/tasks and FOLDER/millrace.json. Chosen are tasks that need
// no network and no programs besides Python's.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { addProgram, makeBaseImage } from '../swe/image.ts';

const run = promisify(execFile);
const maxBuffer = 1 << 26;

/** The last release whose source distribution has the tasks. */
const release = ['terminal-bench', '0.2.9'] as const;
export const taskNames = [
  'hello-world',
  'grid-pattern-transform',
  'blind-maze-explorer-5x5',
  'blind-maze-explorer-algorithm',
  'sqlite-db-truncate',
];
const baseImages = ['ghcr.io/laude-institute/t-bench/python-3-13:20250620', 'ghcr.io/laude-institute/t-bench/ubuntu-24-04:20250624'];

/** What the tests install with uv. The image has it on its disk, since a sandbox has no network. */
const testPackages = ['pytest==8.4.1', 'colorama', 'numpy==2.3.1'];
const uvSettings = 'offline = true\nno-index = true\nfind-links = ["/opt/wheels"]\npython-downloads = "never"\n';

/** Returns the folder. What it already has is not made again. */
export async function makeTerminalBench(folder: string): Promise<string> {
  if (existsSync(join(folder, 'millrace.json'))) return folder;
  await mkdir(folder, { recursive: true });
  await makeImage(join(folder, 'image'));
  await makeTasks(folder);
  const names = Object.fromEntries(baseImages.map((name) => [name, resolve(folder, 'image')]));
  const sandbox = { driver: 'apptainer', images: resolve(folder, 'images'), imageNames: names };
  await writeFile(join(folder, 'millrace.json'), `${JSON.stringify({ sandbox }, undefined, 2)}\n`);
  return folder;
}

async function makeTasks(folder: string): Promise<void> {
  const [name, version] = release;
  const fetching = run('python3', [join(import.meta.dirname, '../swe/fetch_sdists.py'), folder], { maxBuffer });
  fetching.child.stdin?.end(JSON.stringify([release]));
  await fetching;
  const sources = join(folder, 'sources');
  await rm(sources, { recursive: true, force: true });
  await mkdir(sources);
  await run('tar', ['-xzf', join(folder, `${name}-${version}.tar.gz`), '-C', sources, '--strip-components=1', '--no-same-owner']);
  const yaml = join(folder, 'yaml');
  await pip('install', '--target', yaml, 'pyyaml');
  const part = join(folder, 'tasks.part');
  await rm(part, { recursive: true, force: true });
  const env = { ...process.env, PYTHONPATH: yaml };
  await run('python3', [join(import.meta.dirname, 'to_harbor.py'), join(sources, 'tasks'), part, ...taskNames], { env, maxBuffer });
  await rm(join(folder, 'tasks'), { recursive: true, force: true });
  await rename(part, join(folder, 'tasks'));
}

/** This machine's Python, with the real uv and what it would download. */
async function makeImage(folder: string): Promise<void> {
  if (existsSync(folder)) return;
  const part = `${folder}.part`;
  await makeBaseImage(part);
  await pip('install', '--target', `${part}-uv`, 'uv==0.7.13');
  await addProgram(part, join(`${part}-uv`, 'bin/uv'));
  await rm(`${part}-uv`, { recursive: true });
  const { stdout: version } = await run('/usr/bin/python3', ['-c', 'import sys; print("%d.%d" % sys.version_info[:2])']);
  const binary = ['--only-binary', ':all:', '--python-version', version.trim()];
  await pip('download', '--dest', join(part, 'opt/wheels'), ...binary, ...testPackages);
  await mkdir(join(part, 'etc/uv'), { recursive: true });
  await writeFile(join(part, 'etc/uv/uv.toml'), uvSettings);
  // The tests read this file, which uv's installer writes.
  await mkdir(join(part, 'root/.local/bin'), { recursive: true });
  await writeFile(join(part, 'root/.local/bin/env'), '');
  await mkdir(join(part, 'app'), { recursive: true });
  await rename(part, folder);
}

const pip = (...args: string[]) => run('python3', ['-m', 'pip', '--quiet', '--disable-pip-version-check', ...args], { maxBuffer });

if (process.argv[1] === import.meta.filename) {
  const [, , folder = '.millrace-terminal-bench'] = process.argv;
  console.log((await readdir(join(await makeTerminalBench(folder), 'tasks'))).join('\n'));
}
