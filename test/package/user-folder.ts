// An empty folder on a machine that has only npm and Node.js 20, into which a user installs the packed packages.

import { spawnSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { machinePath, needProgram, type ProgramEnd, runProgram } from './run-program.ts';

const npmOptions = ['--prefer-offline', '--no-audit', '--no-fund', '--no-update-notifier'];
/** Fetched where the machine's own Node.js is another one. */
const node20 = '20.20.2';

export interface UserFolder {
  readonly path: string;
  /** The folder that holds `node`, which is Node.js 20. */
  readonly nodeFolder: string;
  run(
    command: readonly string[],
    options?: { readonly env?: Readonly<Record<string, string>>; readonly input?: string },
  ): Promise<ProgramEnd>;
}

export class NoNetwork extends Error {}

/** Packs `folders` and installs them. Throws NoNetwork where the registry cannot be reached. */
export async function openUserFolder(path: string, tarballs: readonly string[]): Promise<UserFolder> {
  const nodeFolder = await findNode20(join(path, '../node-20'));
  await mkdir(path);
  await npm(['install', ...npmOptions, ...tarballs], path, nodeFolder);
  return { path, nodeFolder, run: (command, options) => runProgram(command, { cwd: path, path: [nodeFolder], ...options }) };
}

export interface Packed {
  readonly name: string;
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly string[];
  readonly tarball: string;
}

export async function packFolders(folders: readonly string[], out: string): Promise<Packed[]> {
  await mkdir(out);
  const reply = await needProgram(['npm', 'pack', '--json', '--loglevel=error', '--pack-destination', out, ...folders], { cwd: out });
  const packs: { name: string; filename: string; size: number; unpackedSize: number; files: { path: string }[] }[] = Object.values(
    JSON.parse(reply),
  );
  return packs.map(({ name, filename, size, unpackedSize, files }) => {
    const tarball = globSync(`${out}/${filename.replace(/^@/, '').replace('/', '-')}`)[0] ?? '';
    return { name, size, unpackedSize, files: files.map((file) => file.path), tarball };
  });
}

async function findNode20(folder: string): Promise<string> {
  for (const candidate of machinePath()) {
    const program = join(candidate, 'node');
    if (existsSync(program) && spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout.startsWith('v20.')) {
      // A folder with nothing but node in it.
      await mkdir(join(folder, 'bin'), { recursive: true });
      await writeFile(join(folder, 'bin/node'), `#!/bin/sh\nexec '${program}' "$@"\n`, { mode: 0o755 });
      return join(folder, 'bin');
    }
  }
  const name = `node-linux-${process.arch}`;
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'package.json'), '{}');
  await npm(['install', ...npmOptions, `${name}@${node20}`], folder, '');
  return join(folder, 'node_modules', name, 'bin');
}

async function npm(args: readonly string[], cwd: string, nodeFolder: string): Promise<void> {
  const { code, stdout, stderr } = await runProgram(['npm', ...args], { cwd, path: nodeFolder === '' ? [] : [nodeFolder] });
  if (code === 0) return;
  const output = `npm ${args.join(' ')}: exit code ${code}\n${stdout}${stderr}`;
  throw /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH|ENOTCACHED/.test(output) ? new NoNetwork(output) : new Error(output);
}
