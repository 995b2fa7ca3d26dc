// The wheel of the Python client, built and installed as a user would: with the machine's own pip, into a fresh environment.

import { existsSync, globSync } from 'node:fs';
import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { needProgram, runProgram } from './run-program.ts';

const python = existsSync('/usr/bin/python3') ? '/usr/bin/python3' : 'python3';

const modules = ['ensurepip', 'pip', 'setuptools', 'wheel'];

/** Why a wheel cannot be built and installed here; undefined where it can. */
export async function findMissingPython(): Promise<string | undefined> {
  const program = `import importlib.util as u; print(*[m for m in ${JSON.stringify(modules)} if u.find_spec(m) is None])`;
  const probe = await runProgram([python, '-c', program], { cwd: '/' }).catch(() => undefined);
  if (probe?.code === 0 && probe.stdout.trim() === '') return undefined;
  const missing = probe === undefined ? 'python3' : `${probe.stdout}${probe.stderr}`.trim();
  return `${python} lacks ${missing}; try: apt-get install python3-pip python3-setuptools python3-wheel python3-venv`;
}

/** Returns the Python of an environment in which nothing but the wheel is installed. */
export async function installWheel(packageFolder: string, folder: string): Promise<string> {
  await mkdir(folder);
  await cp(packageFolder, join(folder, 'source'), { recursive: true });
  const wheelOptions = ['--no-deps', '--no-build-isolation', '--no-index', '--quiet', '--wheel-dir', folder];
  await needProgram([python, '-m', 'pip', 'wheel', ...wheelOptions, join(folder, 'source')], { cwd: folder });
  const [wheel] = globSync(join(folder, '*.whl'));
  if (wheel === undefined) throw new Error(`pip wrote no wheel into ${folder}`);
  await needProgram([python, '-m', 'venv', 'venv'], { cwd: folder });
  const own = join(folder, 'venv/bin/python');
  await needProgram([own, '-m', 'pip', 'install', '--no-index', '--no-deps', '--quiet', '--disable-pip-version-check', wheel], {
    cwd: folder,
  });
  return own;
}
