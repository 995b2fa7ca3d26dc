// `npm run release`: makes the npm tarballs and the Python wheels of the committed version, from a clean copy of the last commit, into
// release/ with their checksums. Uploads nothing. Refuses when the result would not be what the commit says.

import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '@millrace/protocol';
import { readChanges, readVersion } from './versions.ts';

/** Why the checkout at `root` cannot be released; empty when it can. */
export function findReleaseProblems(root: string): string[] {
  const problems: string[] = [];
  const changed = execFileSync('git', ['status', '--porcelain'], { cwd: root, encoding: 'utf8' }).trimEnd();
  if (changed !== '') problems.push(`the working tree has changes that are not committed:\n${changed}`);
  try {
    const version = readVersion(root);
    if (readChanges(root, version) === undefined) problems.push(`CHANGELOG.md has no section [${version}]`);
  } catch (error) {
    problems.push(messageOf(error));
  }
  return problems;
}

/** Returns the names of the files it wrote into `out`. */
async function makeRelease(root: string, out: string): Promise<string[]> {
  const work = await mkdtemp(join(tmpdir(), 'millrace-release-'));
  try {
    const clone = join(work, 'clone');
    await mkdir(clone);
    run(['sh', '-c', `git archive HEAD | tar -x -C '${clone}'`], root);
    run(['npm', 'ci', '--no-audit', '--no-fund', '--loglevel=error'], clone);
    run([join(clone, 'node_modules/.bin/node'), 'scripts/build.ts'], clone);
    await rm(out, { recursive: true, force: true });
    await mkdir(out, { recursive: true });
    run(['npm', 'pack', '--loglevel=error', '--pack-destination', out, './dist/protocol', './dist/client', './dist/millrace'], clone);
    for (const name of ['client-python', 'trainers-python']) buildWheel(join(clone, 'packages', name), out, commitTime(root));
    return await writeChecksums(out);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** With the installed setuptools; where there is none, pip downloads it. The time of the commit makes the wheel reproducible. */
function buildWheel(folder: string, out: string, time: string): void {
  const python = existsSync('/usr/bin/python3') ? '/usr/bin/python3' : 'python3';
  const isInstalled = spawnSync(python, ['-c', 'import setuptools, wheel']).status === 0;
  const options = ['--no-deps', '--quiet', ...(isInstalled ? ['--no-build-isolation'] : []), '--wheel-dir', out];
  run([python, '-m', 'pip', 'wheel', ...options, folder], folder, { SOURCE_DATE_EPOCH: time });
}

function commitTime(root: string): string {
  return execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: root, encoding: 'utf8' }).trim();
}

async function writeChecksums(out: string): Promise<string[]> {
  const names = (await readdir(out)).sort();
  const lines = names.map(async (name) => {
    const hash = createHash('sha256').update(await readFile(join(out, name)));
    return `${hash.digest('hex')}  ${name}\n`;
  });
  await writeFile(join(out, 'SHA256SUMS'), (await Promise.all(lines)).join(''));
  return [...names, 'SHA256SUMS'];
}

function run([program = '', ...args]: readonly string[], cwd: string, env: Readonly<Record<string, string>> = {}): void {
  console.log(`$ ${[program, ...args].join(' ')}`);
  const { status } = spawnSync(program, args, { cwd, stdio: ['ignore', 'inherit', 'inherit'], env: { ...process.env, ...env } });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} failed with exit code ${status}`);
}

async function main(): Promise<number> {
  const root = join(import.meta.dirname, '..');
  const problems = findReleaseProblems(root);
  for (const problem of problems) console.error(`release: ${problem}`);
  if (problems.length > 0) return 1;
  const version = readVersion(root);
  const out = join(root, 'release');
  const names = await makeRelease(root, out);
  console.log(
    `\nMillrace ${version} in ${out}:\n${names.map((name) => `  ${name}`).join('\n')}\nNothing was uploaded; docs/releasing.md says how.`,
  );
  if (readChanges(root, version)?.date === 'unreleased')
    console.log(`CHANGELOG.md marks ${version} as unreleased: date it before publishing.`);
  return 0;
}

if (import.meta.main) process.exitCode = await main();
