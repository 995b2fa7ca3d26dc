// What must agree before a release: versions, the changelog, and a clean tree.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, globSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { makeTempFolder } from '@millrace/testkit/plain';
import { findPublishProblems } from '../../scripts/publish.ts';
import { findReleaseProblems } from '../../scripts/release.ts';
import { readChanges, readVersion, readVersions, writeVersions } from '../../scripts/versions.ts';

const root = join(import.meta.dirname, '../..');

test('all npm packages and the Python client have one version, and the changelog describes it', () => {
  const version = readVersion(root);
  assert.notEqual(readChanges(root, version)?.text ?? '', '', `CHANGELOG.md has no section [${version}]`);
  const files = readVersions(root).map(({ file }) => file);
  for (const needed of ['packages/cli/package.json', 'package-lock.json']) assert.ok(files.includes(needed), needed);
  assert.ok(
    files.some((file) => file.startsWith('packages/client-python/')),
    'no version of the Python client',
  );
});

/** A checkout with a manifest and a changelog, all committed. */
async function makeCheckout(folder: string, version: string, heading: string) {
  const write = async (path: string, text: string) => {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  };
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=test', '-c', 'user.email=test@example.org', ...args], { cwd: folder, stdio: 'ignore' });
  await write('packages/cli/package.json', `{\n  "name": "millrace",\n  "version": "${version}"\n}\n`);
  await write('CHANGELOG.md', `# Changelog\n\n## ${heading}\n\n- It was.\n`);
  await write('.gitignore', 'release/\n');
  git('init');
  git('add', '-A');
  git('commit', '-m', 'all');
  return { write, git };
}

test('a release is refused while the tree has changes, versions differ, or the changelog lacks the version', async () => {
  await using folder = await makeTempFolder('mr-release');
  const { write, git } = await makeCheckout(folder.path, '1.2.0', '[1.1.0] - 2026-01-01');
  await write('packages/client/package.json', '{\n  "name": "@millrace/client",\n  "version": "1.1.0"\n}\n');
  const [dirty = '', different = '', ...more] = findReleaseProblems(folder.path);
  assert.match(dirty, /changes that are not committed/);
  assert.match(different, /the versions differ:\n.*1\.\d\.0 {2}packages\/cl/);
  assert.deepEqual(more, []);

  writeVersions(folder.path, '1.2.0');
  git('add', '-A');
  git('commit', '-m', 'all');
  assert.deepEqual(findReleaseProblems(folder.path), ['CHANGELOG.md has no section [1.2.0]']);

  await write('CHANGELOG.md', '# Changelog\n\n## [1.2.0] - unreleased\n\n- It is.\n\n## [1.1.0] - 2026-01-01\n');
  git('commit', '-am', 'changes');
  assert.deepEqual(findReleaseProblems(folder.path), []);
  assert.deepEqual(readChanges(folder.path, '1.2.0'), { date: 'unreleased', text: '- It is.' });
});

test('a version is published only with its tag, its date and the files of its checksums', async () => {
  await using folder = await makeTempFolder('mr-publish');
  const { write, git } = await makeCheckout(folder.path, '1.2.0', '[1.2.0] - unreleased');
  const [tag = '', date = '', files = ''] = findPublishProblems(folder.path, 'v1.1.0');
  assert.match(tag, /the tag v1\.1\.0 is not v1\.2\.0/);
  assert.match(date, /marks 1\.2\.0 as unreleased/);
  assert.match(files, /SHA256SUMS is not there: run npm run release/);

  await write('CHANGELOG.md', '# Changelog\n\n## [1.2.0] - 2026-02-01\n\n- It was.\n');
  git('commit', '-am', 'date');
  const names = ['millrace-protocol', 'millrace-client', 'millrace'].map((name) => `${name}-1.2.0.tgz`);
  for (const name of names) await write(`release/${name}`, name);
  const sum = (name: string) => `${createHash('sha256').update(name).digest('hex')}  ${name}\n`;
  await write('release/SHA256SUMS', names.map(sum).join(''));
  assert.deepEqual(findPublishProblems(folder.path, 'v1.2.0'), []);
  await write(`release/${names[2]}`, 'another file');
  assert.deepEqual(findPublishProblems(folder.path, 'v1.2.0'), ['release/millrace-1.2.0.tgz is not the file of SHA256SUMS']);
  await write('release/SHA256SUMS', names.slice(1).map(sum).join(''));
  assert.equal(findPublishProblems(folder.path, 'v1.2.0')[0], 'release/ has no millrace-protocol-1.2.0.tgz');
});

test('the workflows run only scripts that there are', async () => {
  const { scripts } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  const workflows = globSync('.github/workflows/*.yml', { cwd: root });
  assert.ok(workflows.length >= 3);
  for (const path of workflows) {
    const text = await readFile(join(root, path), 'utf8');
    for (const [, name = ''] of text.matchAll(/npm (?:run )?(test|[a-z]+:[a-z]+|release)\b/g))
      assert.ok(scripts[name], `${path}: npm run ${name}`);
    for (const [, file = ''] of text.matchAll(/run: (?:node )?(\.?[\w/.-]+\/[\w.-]+)/g))
      assert.ok(existsSync(join(root, file)), `${path}: ${file}`);
  }
});
