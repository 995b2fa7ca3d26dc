// Makes the example set: for each bug a repository with two releases, an image that holds it, and a task whose patch and tests come from the
// newer release. `node examples/swe/make.ts FOLDER` writes FOLDER/tasks.jsonl; it needs PyPI, git and Apptainer's tools, and no root.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { logParserOf } from '@millrace/scenarios';
import { type Bug, bugs } from './bugs.ts';
import { makeBaseImage, makeTaskImage, pythonFolder } from './image.ts';

const run = promisify(execFile);
const maxBuffer = 1 << 26;
const isTest = /(^|\/)tests?\/|(^|\/)(test_[^/]*|[^/]*_test|conftest)\.py$/;
const isTestModule = /(^|\/)(test_[^/]*|[^/]*_test)\.py$/;
const pythonPath = ['/testbed/src', '/testbed'];

/** Returns the path of the file with the tasks. What the folder already has is not made again. */
export async function makeSweExample(folder: string): Promise<string> {
  const out = join(folder, 'tasks.jsonl');
  if (existsSync(out)) return out;
  await mkdir(join(folder, 'images'), { recursive: true });
  await mkdir(join(folder, 'sdists'), { recursive: true });
  const wanted = bugs.flatMap(({ name, from, to }) => [
    [name, from],
    [name, to],
  ]);
  const fetching = run('python3', [join(import.meta.dirname, 'fetch_sdists.py'), join(folder, 'sdists')], { maxBuffer });
  fetching.child.stdin?.end(JSON.stringify(wanted));
  await fetching;
  const base = join(folder, 'base-image');
  if (!existsSync(base)) await makeBaseImage(base);
  const lines: string[] = [];
  for (const bug of bugs) lines.push(JSON.stringify({ scenario: 'swe', task: await makeTask(bug, folder, base) }));
  await writeFile(`${out}.part`, `${lines.join('\n')}\n`);
  await rename(`${out}.part`, out);
  return out;
}

async function makeTask(bug: Bug, folder: string, base: string): Promise<Record<string, unknown>> {
  const work = await mkdtemp(join(tmpdir(), 'swe-'));
  try {
    const repository = join(work, 'testbed');
    const git = async (...args: string[]) => (await run('git', ['-C', repository, ...gitOptions, ...args], { maxBuffer })).stdout;
    await run('git', ['init', '-q', '-b', 'main', repository]);
    await commitRelease(bug, bug.from, { folder, work, repository, git });
    await commitRelease(bug, bug.to, { folder, work, repository, git });
    const names = (await git('diff', '--name-only', '--no-renames', 'HEAD~1', 'HEAD')).split('\n').filter((name) => name.endsWith('.py'));
    const [tests, sources] = [names.filter((name) => isTest.test(name)), names.filter((name) => !isTest.test(name) && name !== 'setup.py')];
    const diff = (paths: readonly string[]) => git('diff', '--binary', '--no-renames', 'HEAD~1', 'HEAD', '--', ...paths);
    const [patch, testPatch] = [await diff(sources), await diff(tests)];
    const modules = (await git('ls-files', '--', ...tests)).split('\n').filter((name) => isTestModule.test(name));
    const commit = (await git('rev-parse', 'HEAD~1')).trim();
    const python = join(base, pythonFolder);
    await git('checkout', '-q', '-f', 'HEAD~1');
    await git(
      'checkout',
      '-q',
      'main',
      '--',
      ...modules,
      ...tests.filter((name) => !isTestModule.test(name) && existsSync(join(repository, name))),
    );
    const before = await runTests(repository, modules, python);
    await git('checkout', '-q', '-f', 'main');
    const after = await runTests(repository, modules, python);
    const passing = [...after].filter(([, status]) => status === 'PASSED').map(([name]) => name);
    const id = `${bug.name}-${bug.to}`;
    await makeTaskImage(base, join(folder, 'images', id), repository);
    return {
      instance_id: id,
      repo: bug.repo,
      base_commit: commit,
      problem_statement: `${bug.problem}\n\nThis is release ${bug.from} of ${bug.name}.`,
      image: resolve(folder, 'images', id),
      activate: `export PYTHONPATH=${[pythonFolder, ...pythonPath].join(':')}`,
      test_command: `python3 -m pytest -rA --tb=short ${modules.join(' ')}`,
      test_patch: testPatch,
      FAIL_TO_PASS: passing.filter((name) => before.get(name) !== 'PASSED'),
      PASS_TO_PASS: passing.filter((name) => before.get(name) === 'PASSED'),
      log_parser: 'pytest',
      patch,
    };
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

const gitOptions = [
  '-c',
  'user.name=example',
  '-c',
  'user.email=example@localhost',
  '-c',
  'core.autocrlf=false',
  '-c',
  'core.hooksPath=/dev/null',
];

interface Releases {
  readonly folder: string;
  readonly work: string;
  readonly repository: string;
  git(...args: string[]): Promise<string>;
}

/** Replaces the files of the repository by those of a release. */
async function commitRelease(bug: Bug, version: string, { folder, work, repository, git }: Releases): Promise<void> {
  const unpacked = join(work, version);
  await mkdir(unpacked);
  await run('tar', ['-xzf', join(folder, 'sdists', `${bug.name}-${version}.tar.gz`), '-C', unpacked, '--no-same-owner']);
  const [root = ''] = await readdir(unpacked);
  for (const name of await readdir(repository)) if (name !== '.git') await rm(join(repository, name), { recursive: true });
  for (const name of await readdir(join(unpacked, root)))
    if (!name.endsWith('.egg-info') && name !== 'PKG-INFO' && name !== '.git')
      await cp(join(unpacked, root, name), join(repository, name), { recursive: true });
  await run('find', [repository, '-name', '*.egg-info', '-prune', '-exec', 'rm', '-rf', '{}', '+']);
  await git('add', '-A', '-f');
  await git('commit', '-q', '-m', `release ${version}`);
  await git('tag', `v${version}`);
}

/** The status of each test, by pytest's own summary, with the Python that the image has. */
async function runTests(repository: string, modules: readonly string[], python: string) {
  const env = { ...process.env, PYTHONPATH: [python, join(repository, 'src'), repository].join(':'), PYTHONDONTWRITEBYTECODE: '1' };
  const args = ['-m', 'pytest', '-rA', '--tb=no', '-p', 'no:cacheprovider', ...modules];
  const { stdout } = await run('/usr/bin/python3', args, { cwd: repository, env, maxBuffer }).catch(
    (error: Error & { stdout: string }) => error,
  ); // some fail
  return logParserOf('pytest')(stdout);
}

if (process.argv[1] === import.meta.filename) {
  const [, , folder = '.millrace-swe'] = process.argv;
  console.log(await makeSweExample(folder));
}
